"""Schedule runs: beat starts them, workers take turns, and paused runs resume automatically."""

from datetime import datetime
from typing import Any

from django.db.models import Q
from django.utils import timezone

from resources_app.intelligencebank.sync import runs, sweeping, working
from resources_app.intelligencebank.sync.runs import Kind
from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import IBConnection, IBSyncRun
from resources_app.models.jobs import Job

TURN_JOB = "ib_sync"


def request_run(connection: IBConnection, kind: str, requested_by: Any = None) -> IBSyncRun:
    """Start a run and wake a worker at once."""
    run = runs.start(connection, kind)
    enqueue_turn(run, requested_by=requested_by)
    return run


def enqueue_turn(run: IBSyncRun, at: datetime | None = None, requested_by: Any = None) -> Job:
    payload = {"run": run.pk, "client_id": run.connection.client_id}
    return queue.enqueue(
        TURN_JOB, payload, key=f"ib:{run.connection_id}", run_at=at, requested_by=requested_by
    )


@job(TURN_JOB)
def take_turn(running: RunningJob) -> None:
    run = (
        IBSyncRun.objects.select_related("connection")
        .filter(pk=running.payload.get("run", 0))
        .first()
    )
    if run is None or run.status not in runs.OPEN or not run.connection.is_enabled:
        return
    if run.resume_at and run.resume_at > timezone.now():
        enqueue_turn(run, run.resume_at)
        return
    try:
        goes_on = working.work(run, working.Turn(), running.progress)
    except (runs.Busy, runs.LostLease):
        enqueue_turn(run, timezone.now() + runs.LEASE)
        return
    with running.finish():
        if goes_on or run.resume_at:
            enqueue_turn(run, run.resume_at)


def _start_all(kind: str) -> None:
    """Start runs where no admin action is needed.

    A tripped breaker stops the runs that could hide rows.
    """
    usable = IBConnection.objects.filter(is_enabled=True).exclude(
        state=IBConnection.State.AUTH_REQUIRED
    )
    if kind != Kind.INCREMENTAL:
        usable = usable.exclude(state=IBConnection.State.TRIPPED)
    for connection in usable.filter(~Q(credentials=b"")):
        request_run(connection, kind)


@job("ib_incremental")
def start_incremental(running: RunningJob) -> None:
    _start_all(Kind.INCREMENTAL)


@job("ib_reconcile")
def start_reconcile(running: RunningJob) -> None:
    _start_all(Kind.RECONCILE)


@job("ib_full")
def start_full(running: RunningJob) -> None:
    _start_all(Kind.FULL)


@job("ib_purge")
def purge(running: RunningJob) -> None:
    gone = sweeping.purge()
    running.progress(gone, gone, f"{gone} purged")
