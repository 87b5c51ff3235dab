"""Define the Celery tasks. They hold no work themselves: each looks it up in the Job table."""

from datetime import timedelta

import structlog
from celery import shared_task
from django.db import transaction

from resources_app.intelligencebank import demo, entitlements  # noqa: F401  # registers its kind of job
from resources_app.intelligencebank.sync import refreshing, scheduling  # noqa: F401  # registers its kind of job
from resources_app.interchange import scan  # noqa: F401  # registers its kind of job
from resources_app.jobs import cleanup, queue  # noqa: F401  # registers its kind of job
from resources_app.models import Job

logger = structlog.get_logger("backlog.jobs")


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def run_job(job_id: int) -> None:
    if running := queue.claim(job_id):
        queue.run(running)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def sweep_jobs() -> None:
    queue.sweep()


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def enqueue_scheduled(kind: str, every: float = 10) -> None:
    """Enqueue one job per tick, regardless of how many schedulers run and when each was started."""
    if kind not in queue.registered():
        logger.warning("scheduled_kind_unknown", kind=kind)
        return
    same_tick = timedelta(seconds=every / 2)
    with transaction.atomic():
        wanted = queue.enqueue(kind, {}, key=kind)
        around = (wanted.created_at - same_tick, wanted.created_at + same_tick)
        # Checked after our insert, when an earlier job of another scheduler is visible.
        if Job.objects.filter(key=kind, created_at__range=around).exclude(pk=wanted.pk).exists():
            transaction.set_rollback(True)
