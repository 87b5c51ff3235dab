"""Manage the life cycle of a sync run: start, lease, pause and end."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from resources_app.jobs import clock
from resources_app.models import IBConnection, IBSyncRun

LEASE = timedelta(seconds=90)
Kind, Status = IBSyncRun.Kind, IBSyncRun.Status
OPEN = (Status.RUNNING, Status.PAUSED)


class LostLease(Exception):
    """Signal that another worker writes for this tenant now."""


class Busy(Exception):
    """Signal that another worker holds the tenant. Its lease expires if it has died."""


def start(connection: IBConnection, kind: str) -> IBSyncRun:
    """Return a new run, or the open run, which takes precedence over a new one of any kind."""
    with transaction.atomic():
        locked = IBConnection.objects.select_for_update().get(pk=connection.pk)
        if open_run := IBSyncRun.objects.filter(connection=locked, status__in=OPEN).first():
            return open_run
        if locked.last_full_at is None:
            kind = Kind.FULL
        locked.generation += 1
        locked.save(update_fields=["generation"])
        now = timezone.now()
        first = {"stage": "recent" if kind == Kind.INCREMENTAL else "start"}
        return IBSyncRun.objects.create(
            connection=locked,
            kind=kind,
            generation=locked.generation,
            checkpoint=first,
            started_at=now,
            heartbeat_at=now,
        )


@contextmanager
def lease(run: IBSyncRun) -> Iterator[int]:
    """Acquire the lease and yield its fencing token.

    A worker that died keeps the tenant until the lease expires; its token is then void.
    """
    fence = _acquire(run.connection)
    try:
        yield fence
    finally:
        IBConnection.objects.filter(pk=run.connection_id, fence=fence).update(lease_until=None)


def _acquire(connection: IBConnection) -> int:
    with transaction.atomic():
        locked = IBConnection.objects.select_for_update().get(pk=connection.pk)
        is_free = Q(lease_until__isnull=True) | clock.abandoned(LEASE)
        if not IBConnection.objects.filter(is_free, pk=locked.pk).exists():
            raise Busy(f"Another worker is syncing {connection}.")
        locked.fence += 1
        locked.lease_until = clock.now() + LEASE
        locked.save(update_fields=["fence", "lease_until"])
        return locked.fence


def hold(connection_id: int, fence: int) -> None:
    """Extend the lease in the transaction of a page, which commits only if no other worker has
    taken over.
    """
    mine = IBConnection.objects.filter(pk=connection_id, fence=fence)
    if not mine.update(lease_until=clock.now() + LEASE):
        raise LostLease(f"connection {connection_id}, fence {fence}")


def finish(run: IBSyncRun, status: str, error: str = "") -> None:
    run.status, run.error, run.finished_at, run.resume_at = (
        status,
        error[:500],
        timezone.now(),
        None,
    )
    run.save(update_fields=["status", "error", "finished_at", "resume_at", "counters"])


def pause(run: IBSyncRun, resume_at: datetime, reason: str) -> None:
    run.status, run.error, run.resume_at = Status.PAUSED, reason[:500], resume_at
    run.failures += 1
    run.save(update_fields=["status", "error", "resume_at", "failures"])


def resume(run: IBSyncRun) -> None:
    run.status, run.error, run.resume_at = Status.RUNNING, "", None
    run.save(update_fields=["status", "error", "resume_at"])


def trip(connection: IBConnection, reason: str) -> None:
    """Trip the breaker: nothing is hidden or deleted until an admin has reviewed it."""
    connection.state, connection.state_reason = IBConnection.State.TRIPPED, reason[:500]
    connection.save(update_fields=["state", "state_reason"])


def accept_missing(connection: IBConnection, most: int) -> None:
    """Accept after review: the next complete run may hide this many rows, with the account's
    current rank.
    """
    connection.state, connection.state_reason, connection.accepted_missing = (
        IBConnection.State.OK,
        "",
        most,
    )
    connection.was_main_admin = False
    connection.save(update_fields=["state", "state_reason", "accepted_missing", "was_main_admin"])


def accept_last_trip(connection: IBConnection) -> int:
    last = (
        IBSyncRun.objects.filter(connection=connection, status=Status.TRIPPED)
        .order_by("-pk")
        .first()
    )
    most = int(last.counters.get("would_hide", 0)) if last else 0
    accept_missing(connection, most)
    return most


def lookback(connection: IBConnection) -> timedelta:
    """Return the lookback: the longest recent run plus ten minutes.

    Changes made during a run are read again.
    """
    recent = IBSyncRun.objects.filter(connection=connection, finished_at__isnull=False).order_by(
        "-pk"
    )[:20]
    longest = max(
        (run.finished_at - run.started_at for run in recent if run.finished_at), default=timedelta()
    )
    return longest + timedelta(minutes=10)


def complete(run: IBSyncRun, watermark: datetime | None) -> None:
    """Complete the run in the transaction of the last step."""
    now = timezone.now()
    row = IBConnection.objects.filter(pk=run.connection_id)
    row.update(last_complete_at=now)
    if run.kind == Kind.FULL:
        row.update(last_full_at=now)
    if watermark:
        row.filter(Q(watermark__isnull=True) | Q(watermark__lt=watermark)).update(
            watermark=watermark
        )
    finish(run, Status.COMPLETE)
