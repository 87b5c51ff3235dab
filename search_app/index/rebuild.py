"""Rebuild the index in the other slot and swap them (`reindex`), and repair missing or stale
documents (the sweep).

Each step is a short transaction that also stores its position, so that the next run continues a
killed one. Meanwhile writes go to both slots. Rows being written are skipped, because their writer
indexes them.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import Exists, IntegerField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.jobs.time_slices import time_slices
from resources_app.models import Comment
from search_app.backends import backend
from search_app.index.documents import SOURCES
from search_app.index.write import current_state, remove_documents, write_documents
from search_app.models import SLOTS, Document, IndexState, Passage

# Increment when tokens.py or documents.py change what is stored; a sweep then rebuilds.
SCHEMA = 1
# Rows read at a time, and rows that one statement writes or deletes.
CHUNK, CLEARED_CHUNK = 100, 2000
GROUP, CLEARED_GROUP = 5, 200
# A search that began before the swap may still be reading the old slot.
OLD_SLOT_KEPT = timedelta(minutes=1)
HEAL_ROUNDS = 5

Progress = Callable[[int, int, str], None]


@job("reindex")
def reindex_job(running: RunningJob) -> None:
    reindex(running.progress)


@job("sweep_index")
def sweep_job(running: RunningJob) -> None:
    healed = sweep(running.heartbeat)
    running.progress(healed, healed, f"{healed} repaired")
    if current_state().live_schema != SCHEMA:
        queue.enqueue("reindex", {}, key="reindex")


def reindex(progress: Progress | None = None) -> int:
    """Rebuild the index, continuing an interrupted rebuild.

    Return the number of objects processed.
    """
    tell = progress or _silent
    _start()
    written = 0
    while (state := current_state()).building:
        step = _step(state)
        written += step
        done, total = (
            state.position["done"] + step,
            max(state.position["total"], state.position["done"] + step),
        )
        tell(done, total, state.position["kind"])
        if not step and not _advance(state):
            heal(state.building, tell_alive=partial(tell, done, total, "checking"))
            backend().settle(state.building)
            _swap(state)
    return written


def sweep(tell_alive: Callable[[], None] | None = None) -> int:
    """Repair documents in the live slot that were lost or written past the write path, and empty
    the unused slot.
    """
    state = current_state()
    healed = heal(state.live, tell_alive=tell_alive)
    _remove_leftover_passages()
    if (
        not state.building
        and state.swapped_at
        and state.swapped_at < timezone.now() - OLD_SLOT_KEPT
    ):
        _empty(_other(state.live))
    return healed


def heal(slot: str, tell_alive: Callable[[], None] | None = None) -> int:
    healed = 0
    for kind in SOURCES:
        for _ in range(HEAL_ROUNDS):
            round_ = _heal_kind(slot, kind, tell_alive or _silent_alive)
            healed += round_
            if not round_:
                break
    return healed


def index_health() -> dict[str, Any]:
    """Return the index health for doctor and readyz.

    Compares the versions of all rows, so it is too slow for every request.
    """
    state = current_state()
    counts = {kind: stale_things(state.live, kind).count() for kind in SOURCES}
    leftover = sum(leftovers(state.live, kind).count() for kind in SOURCES)
    fresh = not any(counts.values()) and not leftover and state.live_schema == SCHEMA
    return {
        "status": "ok" if fresh else "rebuilding" if state.building else "stale",
        "documents": Document.objects.filter(slot=state.live).count(),
        "missing_or_stale": counts,
        "leftover": leftover,
        "schema": state.live_schema,
        "current_schema": SCHEMA,
        "rebuild": state.position if state.building else None,
        "suggestion": "" if fresh else "Run: python manage.py reindex",
    }


def stale_things(slot: str, kind: str) -> QuerySet[Any]:
    """Return objects whose document is missing or has another version."""
    source = SOURCES[kind]
    things: QuerySet[Any] = source.model.objects.all()
    current = Document.objects.filter(
        slot=slot, kind=kind, object_id=OuterRef("pk"), version=OuterRef("version")
    )
    if source.has_comments:
        said = Comment.objects.live().filter(**{kind: OuterRef("pk")}).order_by().values(kind)
        total = Subquery(
            said.annotate(total=Sum("version")).values("total"), output_field=IntegerField()
        )
        things = things.alias(said=Coalesce(total, 0))
        current = current.filter(comments_version=OuterRef("said"))
    return things.filter(~Exists(current))


def leftovers(slot: str, kind: str) -> QuerySet[Document]:
    """Return documents whose object was deleted."""
    thing = SOURCES[kind].model.objects.filter(pk=OuterRef("object_id"))
    return Document.objects.filter(~Exists(thing), slot=slot, kind=kind)


def _remove_leftover_passages() -> None:
    for kind, source in SOURCES.items():
        thing = source.model.objects.filter(pk=OuterRef("object_id"))
        _delete(Passage.objects.filter(~Exists(thing), kind=kind))


def _start() -> None:
    """Start a rebuild unless one is already running."""
    state = current_state()
    if state.building and state.building_schema == SCHEMA:
        return
    if state.building:
        IndexState.objects.filter(pk=state.pk).update(building="")
    _empty(_other(state.live))
    with transaction.atomic():
        backend().lock_exclusive()
        state = current_state()
        if not state.building:
            total = sum(source.model.objects.count() for source in SOURCES.values())
            state.building, state.building_schema = _other(state.live), SCHEMA
            state.position = {"kind": next(iter(SOURCES)), "after": 0, "done": 0, "total": total}
            state.save()


def _step(state: IndexState) -> int:
    kind = state.position["kind"]
    following = SOURCES[kind].model.objects.filter(pk__gt=state.position["after"])
    numbers = list(following.order_by("pk").values_list("pk", flat=True)[:CHUNK])
    position = state.position
    for part in time_slices(_groups(numbers, GROUP)):
        with transaction.atomic():
            for group in part:
                _write_group(state.building, kind, group)
                position = position | {"after": group[-1], "done": position["done"] + len(group)}
            _move(state, position)
    return len(numbers)


def _write_group(slot: str, kind: str, numbers: list[int]) -> int:
    things = list(_lockable(SOURCES[kind].model.objects.filter(pk__in=numbers).order_by("pk")))
    write_documents(slot, kind, things)
    return len(things)


def _advance(state: IndexState) -> bool:
    """Move to the next kind, if there is one."""
    kinds = list(SOURCES)
    following = kinds[kinds.index(state.position["kind"]) + 1 :]
    if following:
        _move(state, state.position | {"kind": following[0], "after": 0})
    return bool(following)


def _move(state: IndexState, position: dict[str, Any]) -> None:
    IndexState.objects.filter(pk=state.pk, building=state.building).update(position=position)


def _swap(state: IndexState) -> None:
    with transaction.atomic():
        backend().lock_exclusive()
        IndexState.objects.filter(pk=state.pk, building=state.building).update(
            live=state.building,
            live_schema=state.building_schema,
            building="",
            position={},
            swapped_at=timezone.now(),
        )


def _heal_kind(slot: str, kind: str, tell_alive: Callable[[], None]) -> int:
    healed = 0
    stale = list(stale_things(slot, kind).order_by("pk").values_list("pk", flat=True))
    for part in time_slices(_groups(stale, GROUP)):
        with transaction.atomic():
            backend().lock_shared()
            healed += sum(_write_group(slot, kind, group) for group in part)
        tell_alive()
    gone = list(leftovers(slot, kind).values_list("object_id", flat=True))
    for part in time_slices(_groups(gone, GROUP)):
        with transaction.atomic():
            for group in part:
                remove_documents(slot, kind, group)
    return healed + len(gone)


def _groups(numbers: list[int], size: int) -> list[list[int]]:
    return [numbers[start : start + size] for start in range(0, len(numbers), size)]


def _lockable(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.select_for_update(of=("self",), no_key=True, skip_locked=True)


def _empty(slot: str) -> None:
    rows = Document.objects.filter(slot=slot)
    if not rows.exists():
        return
    with transaction.atomic():
        backend().clear(slot)
    _delete(rows)


def _delete(rows: QuerySet[Any]) -> None:
    while numbers := list(rows.order_by("pk").values_list("pk", flat=True)[:CLEARED_CHUNK]):
        for part in time_slices(_groups(numbers, CLEARED_GROUP)):
            with transaction.atomic():
                for group in part:
                    rows.model._default_manager.filter(pk__in=group).delete()


def _other(slot: str) -> str:
    return next(other for other in SLOTS if other != slot)


def _silent(done: int, total: int, note: str) -> None:
    """Ignore progress."""


def _silent_alive() -> None:
    """Ignore the heartbeat."""
