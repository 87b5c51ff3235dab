"""Encode visibility, kind and status of a document as tokens that no text contains.

The most common filters are looked up like words, so that matches can be counted without reading
rows.
"""

from collections.abc import Sequence
from typing import Any

from search_app.tokens import AS_WRITTEN

MARK = AS_WRITTEN * 2
# Visible to all readers, or decided by rows. Archived documents have neither.
SHARED, LIMITED = f"{MARK}shared", f"{MARK}limited"
_KINDS_WITH_STATUS = ("task", "epic")


def marks_of(kind: str, columns: dict[str, Any]) -> str:
    """Return the marks of a document from its columns.

    The last one combines all three, because a rare token is found fastest.
    """
    if columns["archived"]:
        return ""
    seen_by, status = LIMITED if columns["restricted"] else SHARED, columns["status"]
    marks = [seen_by, _mark(seen_by, kind)]
    return " ".join(marks if status is None else [*marks, _mark(seen_by, kind, status)])


def marks_asked_for(seen_by: str, kinds: Sequence[str], statuses: Sequence[int]) -> tuple[str, ...]:
    """Return the marks of which every document that passes these filters has one."""
    if statuses:
        return tuple(
            _mark(seen_by, kind, status)
            for kind in kinds or _KINDS_WITH_STATUS
            for status in statuses
        )
    return tuple(_mark(seen_by, kind) for kind in kinds) or (seen_by,)


def _mark(seen_by: str, kind: str, status: int | str = "") -> str:
    # FTS5 would end the token at an underscore.
    return f"{seen_by}{kind.replace('_', '')}{status and int(status)}"
