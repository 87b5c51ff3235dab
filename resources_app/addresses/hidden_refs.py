"""Mask the ids of tasks and epics that a caller cannot see as `hidden`, and restore them when they
are written back.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.db.models import Value

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import HIDDEN, parse_ref
from resources_app.history.revisions import Document
from resources_app.identity.roles import Person, is_admin
from resources_app.models import Epic, Task

# The fields that name other items, and the request arguments that change them.
NAMING_FIELDS = ("depends_on", "epic_id")
_NAMING = (*NAMING_FIELDS, "parent_id", "operation")
# Numbers start at 1.
NO_EPIC = Epic.make_ref(0)
_MODELS: tuple[type[Task] | type[Epic], ...] = (Task, Epic)


class Mask:
    """Mask the ids that `user` cannot see. Each id is looked up once, with one query per call."""

    def __init__(self, user: Person) -> None:
        self._user = user
        self._sees_all = is_admin(user)
        self._visible: dict[str, bool] = {}

    def shown(self, document: Document) -> Document:
        """Return a document, an item, a change or a search result as the user sees it."""
        return self.all_shown([document])[0]

    def all_shown(self, documents: Iterable[Document]) -> list[Document]:
        """Return a page of documents as the user sees them, with one query."""
        given = list(documents)
        if self._sees_all:
            return given
        self.look_up(given)
        return [
            {
                name: self._masked(value) if name in _NAMING else value
                for name, value in document.items()
            }
            for document in given
        ]

    def value(self, value: Any) -> Any:
        """Return the value of a naming field as the user sees it."""
        return self.shown({"depends_on": value})["depends_on"]

    def restored(self, before: Document, changed: Document) -> Document:
        """Return `changed` with each `hidden` replaced by the id it stands for in `before`.

        Raises ValidationFailed if `before` has no hidden id for a marker, because the marker alone
        identifies nothing.
        """
        found = dict(changed)
        if changed.get("epic_id") == HIDDEN:
            found["epic_id"] = self._only_hidden("epic_id", [before.get("epic_id")], 1)[0]
        if HIDDEN in (changed.get("depends_on") or ()):
            wanted = changed["depends_on"].count(HIDDEN)
            kept = iter(self._only_hidden("depends_on", before.get("depends_on") or [], wanted))
            refs = [next(kept) if ref == HIDDEN else ref for ref in changed["depends_on"]]
            found["depends_on"] = list(dict.fromkeys(refs))
        return found

    def _only_hidden(self, name: str, refs: Sequence[str | None], wanted: int) -> list[str]:
        hidden = [
            ref
            for ref, shown in zip(refs, self.value(list(refs)), strict=True)
            if ref and shown == HIDDEN
        ]
        if wanted > len(hidden):
            raise ValidationFailed(
                f"{name} has {wanted} {HIDDEN!r}, and {len(hidden)} of its ids are hidden from"
                " you.",
                suggestion=(
                    f"Keep {HIDDEN!r} where you read it, or leave it out to remove what it stands"
                    " for."
                ),
                field=name,
                value=HIDDEN,
            )
        return hidden

    def look_up(self, documents: Iterable[Document]) -> None:
        """Find out which of the ids in the documents the user can see, with one query."""
        if self._sees_all:
            return
        named = [document.get(name) for document in documents for name in _NAMING]
        unknown = {ref for ref in _refs_in(named) if ref not in self._visible}
        if unknown:
            seen = visible_refs(self._user, unknown)
            self._visible |= {ref: ref in seen for ref in unknown}

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return value if self._visible.get(value, True) else HIDDEN
        if isinstance(value, list):
            return [self._masked(one) for one in value]
        return (
            {key: self._masked(one) for key, one in value.items()}
            if isinstance(value, dict)
            else value
        )


def visible_refs(user: Person, refs: Iterable[str]) -> set[str]:
    """Return the task and epic refs that exist and are visible to the user, with one query."""
    found: Any = None
    for model in _MODELS:
        numbers = [number for ref in refs if (number := parse_ref(ref, model.PREFIX)) is not None]
        rows = (
            model.objects.visible_to(user)
            .filter(pk__in=numbers)
            .values_list(Value(model.PREFIX), "pk")
        )
        if numbers:
            found = rows if found is None else found.union(rows, all=True)
    makers = {model.PREFIX: model.make_ref for model in _MODELS}
    return {makers[prefix](number) for prefix, number in found or ()}


def without_refs(document: Document) -> Document:
    """Return the document with every id masked, for notifications sent to many users."""
    mask = Mask.__new__(Mask)
    mask._visible = dict.fromkeys(_refs_in([document.get(name) for name in _NAMING]), False)
    return {
        name: mask._masked(value) if name in _NAMING else value for name, value in document.items()
    }


def _refs_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if parse_ref(value, Task.PREFIX) is not None or parse_ref(value, Epic.PREFIX) is not None:
            yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _refs_in(one)
