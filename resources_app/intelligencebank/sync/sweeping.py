"""Hide at once, delete late: rows a complete run did not see are hidden, and tombstoned when a
later run agrees.
"""

from datetime import timedelta
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone

from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.models import IBConnection, IBFolder, IBResource, IBSyncRun

MAX_SHARE = 0.05
MAX_ROWS = 500
APART = timedelta(hours=1)
KEPT = timedelta(days=30)
CHUNK = 500


class Tripped(Exception):
    """Signal that implausibly many rows are gone. An admin must review it first."""

    def __init__(self, message: str, would_hide: int = 0) -> None:
        super().__init__(message)
        self.would_hide = would_hide


def remember_rank(connection: IBConnection, is_main_admin: bool) -> None:
    if is_main_admin and not connection.was_main_admin:
        connection.was_main_admin = True
        IBConnection.objects.filter(pk=connection.pk).update(was_main_admin=True)


def rows_to_ask(run: IBSyncRun, *, only_missing: bool) -> QuerySet[IBResource]:
    """Return all rows without a tombstone, or only those the run has not seen."""
    rows = IBResource.objects.filter(connection=run.connection_id, tombstoned_at__isnull=True)
    return rows.filter(generation__lt=run.generation) if only_missing else rows


def mark_missing(run: IBSyncRun, mirror: Mirror) -> None:
    unseen = [_unseen(IBFolder, run), _unseen(IBResource, run)]
    _check_breaker(run, sum(rows.filter(missing_since__isnull=True).count() for rows in unseen))
    for rows in unseen:
        agreed = rows.filter(missing_since__lte=mirror.now - APART)
        mirror.counts["tombstoned"] += _mark(mirror, agreed, tombstoned_at=mirror.now)
        fresh = rows.filter(missing_since__isnull=True)
        mirror.counts["missing"] += _mark(mirror, fresh, missing_since=mirror.now)


def _unseen(model: Any, run: IBSyncRun) -> QuerySet[Any]:
    rows: QuerySet[Any] = model.objects.filter(
        connection=run.connection_id, tombstoned_at__isnull=True
    )
    return rows.filter(generation__lt=run.generation)


def _mark(mirror: Mirror, rows: QuerySet[Any], **columns: Any) -> int:
    pks = list(rows.values_list("pk", flat=True))
    for start in range(0, len(pks), CHUNK):
        chunk = rows.model.objects.filter(pk__in=pks[start : start + CHUNK])
        chunk.update(**columns, version=F("version") + 1)
        mirror.tell(list(chunk.select_related("connection")), "remove")
    return len(pks)


def _check_breaker(run: IBSyncRun, missing: int) -> None:
    connection = IBConnection.objects.get(pk=run.connection_id)
    if not IBFolder.objects.filter(
        connection=connection, generation=run.generation, parent_ib_id=""
    ).exists():
        raise Tripped("The root folder has vanished.")
    if missing <= connection.accepted_missing:
        IBConnection.objects.filter(pk=connection.pk).update(accepted_missing=0)
        return
    total = sum(
        model.objects.filter(connection=connection, missing_since__isnull=True).count()
        for model in (IBFolder, IBResource)
    )
    if missing > MAX_ROWS or missing > total * MAX_SHARE:
        message = (
            f"{missing} of {total} rows are gone. If that is right, accept it on the connection."
        )
        raise Tripped(message, missing)


def purge() -> int:
    """Delete rows tombstoned long ago. Until then, a row that reappears is revived."""
    gone = 0
    for model in (IBResource, IBFolder):
        rows: QuerySet[Any] = model.objects.filter(tombstoned_at__lt=timezone.now() - KEPT)
        gone += rows.delete()[0]
    return gone
