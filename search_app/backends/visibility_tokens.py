"""Who may see a document, its kind and its status as tokens that no text has: what filters ask for most is looked up like a
word, so that it can be counted without reading rows."""

from collections.abc import Sequence
from typing import Any

from search_app.tokens import AS_WRITTEN

MARK = AS_WRITTEN * 2
# For whoever may read at all; and what rows decide about. What is archived is neither.
SHARED, LIMITED = f"{MARK}shared", f"{MARK}limited"
_KINDS_WITH_STATUS = ("task", "epic")


def marks_of(kind: str, columns: dict[str, Any]) -> str:
    """Of a document, by its columns beside the text. The last one says all three, for a rare token is found quickest."""
    if columns["archived"]:
        return ""
    seen_by, status = LIMITED if columns["restricted"] else SHARED, columns["status"]
    marks = [seen_by, _mark(seen_by, kind)]
    return " ".join(marks if status is None else [*marks, _mark(seen_by, kind, status)])


def marks_asked_for(seen_by: str, kinds: Sequence[str], statuses: Sequence[int]) -> tuple[str, ...]:
    """Any one of these is what every document has that such filters leave."""
    if statuses:
        return tuple(_mark(seen_by, kind, status) for kind in kinds or _KINDS_WITH_STATUS for status in statuses)
    return tuple(_mark(seen_by, kind) for kind in kinds) or (seen_by,)


def _mark(seen_by: str, kind: str, status: int | str = "") -> str:
    # FTS5 would take an underscore for the end of a token.
    return f"{seen_by}{kind.replace('_', '')}{status and int(status)}"
