"""Hold an item as its history has it, with the values that filters compare."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from resources_app.fields.declarations import parse_ref
from resources_app.history.revisions import Document
from resources_app.models import Change, Epic, Task
from resources_app.vocabulary import UNFINISHED, Priority, Status

# Stands for a value that the history does not contain.
UNKNOWN = object()


class IndexedText(Protocol):
    """Represent the text of an item as the search index would store it."""

    def has_every_word(self, words: str) -> bool: ...


# Builds the indexed text of a kind, a number and a document. The index is in a higher layer and
# registers here.
TextIndex = Callable[[str, int, Document], IndexedText]
_text_index: list[TextIndex] = []


def use_text_index(index: TextIndex) -> None:
    _text_index[:] = [index]


@dataclass(frozen=True)
class Snapshot:
    """Hold an item at a version. What the document lacks is read from the database once."""

    model: type[Task] | type[Epic]
    number: int
    version: int
    document: Document

    def value(self, column: str) -> Any:
        """Return the value to compare with the column of a row, or UNKNOWN."""
        read = _READERS.get(column)
        return read(self) if read else self.document.get(column)

    @cached_property
    def text(self) -> IndexedText:
        return _text_index[0](self.model.KIND, self.number, self.document)

    @cached_property
    def is_ready(self) -> bool:
        """Return whether the task is open and its dependencies are finished now."""
        if self.value("status") != Status.OPEN:
            return False
        needed = self.value("depends_on")
        unfinished = Task.objects.live().filter(pk__in=needed, status__in=UNFINISHED)
        return not (needed and unfinished.exists())

    @cached_property
    def created_at(self) -> Any:
        return self._row[0] if self._row else UNKNOWN

    @cached_property
    def updated_at(self) -> Any:
        """Return when the version was written.

        An import dates the first version itself, so only the row knows that time.
        """
        if self._row is None:
            return UNKNOWN
        created_at, updated_at, version = self._row
        if version == self.version:
            return updated_at
        written = Change.objects.filter(
            kind=self.model.KIND, object_id=self.number, version=self.version
        )
        moment = written.values_list("created_at", flat=True).first()
        is_imported = self.version == 1 and moment != created_at
        return UNKNOWN if moment is None or is_imported else moment

    @cached_property
    def _row(self) -> tuple[datetime.datetime, datetime.datetime, int] | None:
        rows = self.model.objects.filter(pk=self.number)
        return rows.values_list("created_at", "updated_at", "version").first()


def _epic(item: Snapshot) -> int | None:
    return parse_ref(item.document.get("epic_id"), Epic.PREFIX)


def _due(item: Snapshot) -> datetime.date | None:
    written = item.document.get("due_date")
    return datetime.date.fromisoformat(written) if written else None


# Column → its value in a snapshot, where the document does not have it under the same name and in
# the same form.
_READERS: dict[str, Callable[[Snapshot], Any]] = {
    "number": lambda item: item.number,
    "status": lambda item: Status[item.document["status"].upper()],
    "priority": lambda item: Priority[item.document["priority"].upper()],
    "epic_id": _epic,
    "assignee_id": lambda item: item.document.get("assignee"),
    "due_date": _due,
    "label": lambda item: item.document.get("labels") or [],
    "depends_on": lambda item: [
        parse_ref(ref, Task.PREFIX) for ref in item.document.get("depends_on") or []
    ],
    "created_at": lambda item: item.created_at,
    "updated_at": lambda item: item.updated_at,
}
