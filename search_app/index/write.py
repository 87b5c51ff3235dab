"""Update the index inside the transaction of each write, so that new text is found at once."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from resources_app.database.prepared import prepared
from resources_app.models import Change, Comment, IBFolder, IBResource
from resources_app.models.base import Versioned
from search_app.backends import backend
from search_app.backends.visibility_tokens import marks_of
from search_app.index import rows
from search_app.index.documents import SOURCES, Comments, build, columns_beside_text, comments_on
from search_app.models import Document, IndexState, Passage

# Documents written with one statement.
CHUNK = 100


@dataclass
class _Write:
    """Hold what a group of changes did to one object."""

    thing: Versioned
    version_before: int
    is_deleted: bool = False
    has_new_text: bool = False

    def add(self, change: Change, thing: Versioned) -> None:
        self.thing = thing
        self.is_deleted |= change.action == "delete"
        self.has_new_text |= change.action == "create" or bool(
            SOURCES[thing.KIND].texts.intersection(change.fields)
        )


def follow(recorded: Sequence[tuple[Change, Versioned]]) -> None:
    """Index changes, as a listener of resources_app.history.change_log.

    An object that changed several times is indexed once.
    """
    writes: dict[tuple[str, int], _Write] = {}
    for change, thing in recorded:
        if isinstance(thing, Comment):
            _follow_comment(thing)
        elif thing.KIND in SOURCES:
            key = (thing.KIND, thing.pk)
            writes.setdefault(key, _Write(thing, change.version - 1)).add(change, thing)
    if writes:
        _follow_writes(list(writes.values()))


def _follow_writes(writes: Sequence[_Write]) -> None:
    slots = slots_to_write()
    texts: dict[str, list[Versioned]] = defaultdict(list)
    for write in writes:
        if write.is_deleted:
            _forget(write.thing.KIND, write.thing.pk, slots)
        elif write.has_new_text:
            texts[write.thing.KIND].append(write.thing)
        else:
            _keep_beside_text(write.thing, write.version_before, slots)
    for kind, things in texts.items():
        _keep(kind, things, slots)


def follow_mirror(things: Sequence[IBFolder | IBResource]) -> None:
    """Index mirrored objects, a page at a time, as a listener."""
    for kind in dict.fromkeys(thing.KIND for thing in things):
        for slot in slots_to_write():
            write_documents(slot, kind, [thing for thing in things if kind == thing.KIND], {})


def current_state() -> IndexState:
    states = prepared("index state", lambda: IndexState.objects.order_by("pk")[:1]).run()
    return states[0] if states else IndexState()


def slots_to_write() -> tuple[str, ...]:
    """Return the slots to write: both during a rebuild.

    The lock keeps a rebuild from starting or ending during a write.
    """
    backend().lock_shared()
    state = current_state()
    return (state.live, state.building) if state.building else (state.live,)


def write_documents(
    slot: str, kind: str, things: Sequence[Any], comments: dict[int, Comments] | None = None
) -> None:
    if comments is None:
        comments = comments_on(kind, [thing.pk for thing in things])
    built = [build(thing, slot, comments.get(thing.pk, Comments())) for thing in things]
    ids = rows.put(built)
    backend().write(slot, {number: text for number, (_, text) in zip(ids, built, strict=True)})


def remove_documents(slot: str, kind: str, numbers: Iterable[int]) -> None:
    documents = Document.objects.filter(slot=slot, kind=kind, object_id__in=list(numbers))
    ids = list(documents.values_list("pk", flat=True))
    backend().remove(slot, ids)
    documents.filter(pk__in=ids).delete()


def _keep(kind: str, things: Sequence[Versioned], slots: Sequence[str]) -> None:
    for start in range(0, len(things), CHUNK):
        part = things[start : start + CHUNK]
        comments = comments_on(kind, [thing.pk for thing in part])
        for slot in slots:
            write_documents(slot, kind, part, comments)


def _keep_beside_text(thing: Versioned, was: int, slots: Sequence[str]) -> None:
    columns = columns_beside_text(thing)
    for slot in slots:
        if number := rows.renew(slot, thing.KIND, thing.pk, columns, was=was):
            backend().mark(slot, number, marks_of(thing.KIND, columns))
        else:
            write_documents(slot, thing.KIND, [thing])


def _forget(kind: str, number: int, slots: Sequence[str]) -> None:
    for slot in slots:
        remove_documents(slot, kind, [number])
    Passage.objects.filter(kind=kind, object_id=number).delete()


def _follow_comment(comment: Comment) -> None:
    """Index a comment with its item locked, so that of two concurrent comments the second sees the
    first.
    """
    items = type(comment.item)._default_manager.select_for_update(no_key=True)
    if item := items.filter(pk=comment.item.pk).first():
        _keep(item.KIND, [item], slots_to_write())
