"""What filters ask for most, as tokens that no text has: looked up like words, it can be counted without reading rows."""

from typing import Any

from search_app.tokens import AS_WRITTEN

_MARK = AS_WRITTEN * 2
# For whoever may read at all; and what rows decide about. What is archived is neither.
SHARED, LIMITED = f"{_MARK}shared", f"{_MARK}limited"


def kind_mark(kind: str) -> str:
    # FTS5 would take an underscore for the end of a token.
    return _MARK + kind.replace("_", "")


def status_mark(status: int) -> str:
    return f"{_MARK}status{int(status)}"


def marks_of(kind: str, columns: dict[str, Any]) -> str:
    """Of a document, by its columns beside the text."""
    marks = [kind_mark(kind)]
    if columns["status"] is not None:
        marks.append(status_mark(columns["status"]))
    if not columns["archived"]:
        marks.append(LIMITED if columns["restricted"] else SHARED)
    return " ".join(marks)
