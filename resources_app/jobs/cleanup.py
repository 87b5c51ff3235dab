"""Delete expired rows in the hourly "prune" job, a bounded number at a time."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from resources_app.identity import oauth_grants
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import IdempotencyKey, Job

CHUNK = 500
ANSWERS_KEPT = timedelta(hours=24)
JOBS_KEPT = timedelta(days=30)


def _old_answers() -> QuerySet[Any]:
    return IdempotencyKey.objects.filter(created_at__lt=timezone.now() - ANSWERS_KEPT)


def _old_jobs() -> QuerySet[Any]:
    return Job.objects.filter(state=Job.State.DONE, finished_at__lt=timezone.now() - JOBS_KEPT)


@job("prune")
def prune(running: RunningJob) -> None:
    for old in (_old_answers, _old_jobs, oauth_grants.unused_clients):
        while _delete_chunk(running, old):
            pass
    oauth_grants.forget_expired()


def _delete_chunk(running: RunningJob, old: Callable[[], QuerySet[Any]]) -> int:
    with transaction.atomic():
        running.heartbeat()
        chunk = list(old().order_by("pk").values_list("pk", flat=True)[:CHUNK])
        old().filter(pk__in=chunk).delete()
    return len(chunk)
