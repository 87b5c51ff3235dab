"""Check whether a run has seen everything.

No paging order is safe alone, so nothing is hidden before this check passes.
"""

from datetime import datetime

from django.db.models import Count, F, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from resources_app.intelligencebank.client import PAGE
from resources_app.models import IBFolder, IBResource, IBSyncRun

MAX_PASSES = 3
MALFORMED_SHARE = 0.01
_NET = PAGE * 0.9


class Incomplete(Exception):
    """End the run without hiding anything. The message says what was missed."""


class TooManyMalformed(Exception):
    """Report so many unreadable rows that the fault is likely ours or the server's."""


def seen(run: IBSyncRun) -> int:
    return IBResource.objects.filter(
        connection=run.connection_id, generation=run.generation
    ).count()


def seen_in(run: IBSyncRun, folder: IBFolder) -> int:
    rows = IBResource.objects.filter(connection=run.connection_id, generation=run.generation)
    return rows.filter(folder=folder, tombstoned_at__isnull=True).count()


def differing_folders(run: IBSyncRun) -> list[tuple[int, int]]:
    """Return the folders whose announced count differs from the rows seen, with the announced
    count.
    """
    mine = IBResource.objects.filter(
        folder=OuterRef("pk"), generation=run.generation, tombstoned_at__isnull=True
    )
    counted = mine.order_by().values("folder").annotate(n=Count("pk")).values("n")
    folders = IBFolder.objects.filter(connection=run.connection_id, generation=run.generation)
    rows = folders.alias(found=Coalesce(Subquery(counted), 0)).exclude(resources_count=F("found"))
    return list(rows.order_by("pk").values_list("pk", "resources_count"))


def is_cheaper(differing: list[tuple[int, int]], count: int) -> bool:
    """Return whether reading only these folders is cheaper than another pass over everything."""
    return sum(1 + expected // _NET for _, expected in differing) < 1 + count / _NET


def unsee(run: IBSyncRun, folder: IBFolder) -> None:
    """Reset a folder before it is recounted: rows no longer in it must not count as seen there."""
    rows = IBResource.objects.filter(
        connection=run.connection_id, folder=folder, generation=run.generation
    )
    rows.update(generation=run.generation - 1)


def refuse_malformed(run: IBSyncRun) -> None:
    bad, rows = run.counters.get("quarantined", 0), run.counters.get("rows", 0)
    if bad > rows * MALFORMED_SHARE:
        raise TooManyMalformed(f"{bad} of {rows} rows are malformed; see the quarantine.")


def newest(run: IBSyncRun) -> datetime | None:
    """Return the watermark for the next incremental run, never later than the start of this run."""
    rows = IBResource.objects.filter(
        connection=run.connection_id, source_updated_at__lte=run.started_at
    )
    found: datetime | None = rows.aggregate(newest=Max("source_updated_at"))["newest"]
    return found
