"""Whether a run has seen everything. No order of paging is safe alone, so nothing is hidden before this says yes."""

from datetime import datetime

from django.db.models import Count, F, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce

from resources_app.intelligencebank.client import PAGE
from resources_app.models import IBFolder, IBResource, IBSyncRun

MAX_PASSES = 3
MALFORMED_SHARE = 0.01
_NET = PAGE * 0.9


class Incomplete(Exception):
    """The run ends without hiding anything; the text says what was missed."""


class TooManyMalformed(Exception):
    """So many rows cannot be read that the fault is more likely ours or the server's than theirs."""


def seen(run: IBSyncRun) -> int:
    return IBResource.objects.filter(connection=run.connection_id, generation=run.generation).count()


def seen_in(run: IBSyncRun, folder: IBFolder) -> int:
    rows = IBResource.objects.filter(connection=run.connection_id, generation=run.generation)
    return rows.filter(folder=folder, tombstoned_at__isnull=True).count()


def differing_folders(run: IBSyncRun) -> list[tuple[int, int]]:
    """Folders that announce another number than was seen, with that number."""
    mine = IBResource.objects.filter(folder=OuterRef("pk"), generation=run.generation, tombstoned_at__isnull=True)
    counted = mine.order_by().values("folder").annotate(n=Count("pk")).values("n")
    folders = IBFolder.objects.filter(connection=run.connection_id, generation=run.generation)
    rows = folders.alias(found=Coalesce(Subquery(counted), 0)).exclude(resources_count=F("found"))
    return list(rows.order_by("pk").values_list("pk", "resources_count"))


def is_cheaper(differing: list[tuple[int, int]], count: int) -> bool:
    """Reading these folders alone, against one more pass over everything."""
    return sum(1 + expected // _NET for _, expected in differing) < 1 + count / _NET


def unsee(run: IBSyncRun, folder: IBFolder) -> None:
    """A folder is counted anew; what is no longer in it must not count as seen there."""
    rows = IBResource.objects.filter(connection=run.connection_id, folder=folder, generation=run.generation)
    rows.update(generation=run.generation - 1)


def refuse_malformed(run: IBSyncRun) -> None:
    bad, rows = run.counters.get("quarantined", 0), run.counters.get("rows", 0)
    if bad > rows * MALFORMED_SHARE:
        raise TooManyMalformed(f"{bad} of {rows} rows are malformed; see the quarantine.")


def newest(run: IBSyncRun) -> datetime | None:
    """Where the next incremental run begins: never later than this one did."""
    rows = IBResource.objects.filter(connection=run.connection_id, source_updated_at__lte=run.started_at)
    found: datetime | None = rows.aggregate(newest=Max("source_updated_at"))["newest"]
    return found
