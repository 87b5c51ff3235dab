"""The Celery tasks. They carry no work of their own: each looks into the Job table for it."""

from datetime import timedelta

import structlog
from celery import shared_task
from django.utils import timezone

from resources_app import (
    jobs,
    pruning,  # noqa: F401  # registers its kind of job
    scanning,  # noqa: F401  # the same
)
from resources_app.intelligencebank import demo, entitlements  # noqa: F401  # the same
from resources_app.intelligencebank.sync import refreshing, scheduling  # noqa: F401  # the same
from resources_app.models import Job

# A second scheduler's tick comes this soon after the first one's.
SAME_TICK = timedelta(seconds=5)

logger = structlog.get_logger("backlog.jobs")


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_job(job_id: int) -> None:
    if running := jobs.claim(job_id):
        jobs.run(running)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def sweep_jobs() -> None:
    jobs.sweep()


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def enqueue_scheduled(kind: str) -> None:
    """One job for each tick, however many schedulers run."""
    if kind not in jobs.registered():
        logger.warning("scheduled_kind_unknown", kind=kind)
        return
    if not Job.objects.filter(key=kind, created_at__gt=timezone.now() - SAME_TICK).exists():
        jobs.enqueue(kind, {}, key=kind)
