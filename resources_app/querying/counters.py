"""Count the live, unrestricted tasks and epics by status and priority without counting rows.

A write inserts rows of +1 and -1, so writers never wait for each other. A job compacts them
periodically.
"""

from collections import Counter
from typing import Any

from django.db import transaction
from django.db.models import Count, Sum

from resources_app.database.prepared import prepared
from resources_app.identity.roles import Person, may_read, visibility_key
from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import Epic, Tally, Task
from resources_app.models.backlog import Item
from resources_app.models.base import Versioned
from resources_app.querying.conditions import Condition
from resources_app.querying.evaluation import filter_rows

NAMES = frozenset({"status", "priority"})
COMPACTED_EVERY = 500
CHUNK = 5_000

Place = tuple[str, int, int]
Model = type[Task] | type[Epic]
Conditions = tuple[Condition, ...]


def place_of(thing: Versioned) -> Place | None:
    """Return the counter an object belongs to, or None if it is archived or restricted."""
    if not isinstance(thing, Item) or thing.archived_at or thing.restricted:
        return None
    return (thing.KIND, thing.status, thing.priority)


def move(before: Place | None, after: Place | None) -> None:
    if before == after:
        return
    rows = [_row(place, step) for place, step in ((before, -1), (after, 1)) if place]
    written = Tally.objects.bulk_create(rows)
    if any(row.pk % COMPACTED_EVERY == 0 for row in written):
        queue.enqueue("compact_tallies", {}, key="compact_tallies")


def count(model: Model, user: Person, conditions: Conditions) -> int:
    """Count the live tasks or epics that the user can see, under conditions on NAMES only."""
    return sum(count_by("status", model, user, conditions).values())


def count_by(column: str, model: Model, user: Person, conditions: Conditions) -> dict[int, int]:
    if not may_read(user):
        return {}
    key = ("counted", column, model, conditions, visibility_key(user))
    counts: Counter[int] = Counter()
    for value, count in prepared(key, lambda: _counted(column, model, user, conditions)).run():
        counts[value] += count
    return counts


def _counted(column: str, model: Model, user: Person, conditions: Conditions) -> Any:
    """Combine tallies for unrestricted items with row counts for restricted ones.

    A value may occur in both.
    """
    tallies = filter_rows(Tally.objects.filter(kind=model.KIND), conditions)
    limited = filter_rows(model.objects.live().limited_to_groups_of(user), conditions)
    tallied = tallies.order_by().values_list(column).annotate(count=Sum("step"))
    return tallied.union(
        limited.order_by().values_list(column).annotate(count=Count("pk")), all=True
    )


@job("compact_tallies")
def compact_tallies(running: RunningJob) -> None:
    while _compact_chunk(running):
        pass


def _compact_chunk(running: RunningJob) -> bool:
    """Compact one chunk and return whether there may be more."""
    with transaction.atomic():
        running.heartbeat()
        rows = list(Tally.objects.order_by("pk")[:CHUNK])
        sums: Counter[Place] = Counter()
        for row in rows:
            sums[row.kind, row.status, row.priority] += row.step
        if len(sums) == len(rows) and all(sums.values()):
            return False
        Tally.objects.filter(pk__in=[row.pk for row in rows]).delete()
        Tally.objects.bulk_create(_row(place, total) for place, total in sums.items() if total)
    return len(rows) == CHUNK


def recount() -> None:
    """Rebuild the tallies from the rows, for a database filled outside the write path.

    Requires that no writer is active.
    """
    with transaction.atomic():
        Tally.objects.all().delete()
        for model in (Task, Epic):
            counted = (
                model.objects.filter(restricted=False).live().values_list("status", "priority")
            )
            places = counted.annotate(count=Count("pk")).order_by("status", "priority")
            Tally.objects.bulk_create(_row((model.KIND, *place), total) for *place, total in places)


def _row(place: Place, step: int) -> Tally:
    kind, status, priority = place
    return Tally(kind=kind, status=status, priority=priority, step=step)
