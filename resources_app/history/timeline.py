"""Present history for people: author, field, old value, new value.

The cost depends on the page, not on the whole history.
"""

import datetime
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resources_app.editing.text import Splice, splices_between, unified_diff
from resources_app.history import revisions as history
from resources_app.history.revisions import Delta, Document
from resources_app.models import Revision
from resources_app.models.base import Versioned

PAGE = 50
# Longer and multi-line texts are shown as a diff instead of before and after.
MAX_LINE = 200


@dataclass(frozen=True)
class FieldDiff:
    field: str
    before: Any
    after: Any
    # Unified diff; empty if before and after are sufficient.
    text: str = ""

    @property
    def was(self) -> str:
        return _readable(self.before)

    @property
    def became(self) -> str:
        return _readable(self.after)

    @property
    def lines(self) -> list[str]:
        """Return the diff without its two header lines."""
        return self.text.split("\n")[2:]


@dataclass(frozen=True)
class TimelineEntry:
    version: int
    at: datetime.datetime
    action: str
    author: str
    via: str
    agent: str
    token: str
    batch: uuid.UUID | None
    diffs: tuple[FieldDiff, ...]


@dataclass(frozen=True)
class TimelinePage:
    """Hold a page of entries, newest first.

    `older` is the `before` of the next page, or None on the last page.
    """

    entries: list[TimelineEntry]
    older: int | None


def timeline(thing: Versioned, *, before: int | None = None, limit: int = PAGE) -> TimelinePage:
    """Return the history of an object that the caller fetched through `visible_to`."""
    revisions = Revision.objects.filter(kind=thing.KIND, object_id=thing.pk).defer("snapshot")
    if before is not None:
        revisions = revisions.filter(version__lt=before)
    found = list(revisions.select_related("change__author").order_by("-version")[: limit + 1])
    page = found[:limit]
    return TimelinePage(
        _entries(thing, page), older=page[-1].version if len(found) > limit else None
    )


def _entries(thing: Versioned, newest_first: Sequence[Revision]) -> list[TimelineEntry]:
    """Build the entries forward from the document before the page, so that each step applies one
    delta.
    """
    if not newest_first:
        return []
    document = _document_before(thing, newest_first[-1].version)
    entries = []
    for revision in reversed(newest_first):
        if revision.version == 1:
            after = history.document_at(thing.KIND, thing.pk, 1)
            diffs = [
                _diff(thing, name, None, value, None) for name, value in after.items() if value
            ]
        else:
            after = history.apply_delta(document, revision.delta)
            diffs = _diffs(thing, document, after, revision.delta)
        entries.append(_entry(revision, diffs))
        document = after
    return entries[::-1]


def _document_before(thing: Versioned, version: int) -> Document:
    return history.document_at(thing.KIND, thing.pk, version - 1) if version > 1 else {}


def _entry(revision: Revision, diffs: list[FieldDiff]) -> TimelineEntry:
    change = revision.change
    return TimelineEntry(
        version=revision.version,
        at=change.created_at,
        action=change.action,
        author=change.author.get_username() if change.author else "",
        via=change.via,
        agent=change.agent,
        token=change.token,
        batch=change.batch,
        diffs=tuple(diffs),
    )


def _diffs(thing: Versioned, before: Document, after: Document, delta: Delta) -> list[FieldDiff]:
    return [
        _diff(thing, name, before.get(name), after[name], step.get("splices"))
        for name, step in delta.items()
    ]


def _diff(
    thing: Versioned, name: str, before: Any, after: Any, splices: list[Any] | None
) -> FieldDiff:
    old, new = before or "", after or ""
    if not isinstance(old, str) or not isinstance(new, str) or (_is_line(old) and _is_line(new)):
        return FieldDiff(name, before, after)
    steps: list[Splice] = [
        (at, removed, put) for at, removed, put in splices or splices_between(old, new)
    ]
    return FieldDiff(name, before, after, unified_diff(old, steps, f"{thing.ref}/{name}"))


def _is_line(text: str) -> bool:
    return "\n" not in text and len(text) <= MAX_LINE


def _readable(value: Any) -> str:
    if value in (None, "", [], {}):
        return "–"
    if isinstance(value, list):
        return "\n".join(map(_readable, value))
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values() if part)
    return str(value)
