"""Match a row of the fake against a search: words in some fields, an extension, grouped
conditions.
"""

import operator
from collections.abc import Callable, Sequence
from typing import Any

from resources_app.intelligencebank.fake.profile import Profile

# Search name → field of the row.
_FIELDS = {"ib_uuid": "_id"}
_TEXTS = ("name", "description", "tags", "file")
_TIMES = ("createTime", "lastUpdateTime")
_RANGES = {"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le}

Row = dict[str, Any]


class BadCondition(Exception):
    """Report a condition that no known client uses."""


def is_by_id(search: dict[str, Any]) -> bool:
    return bool(search.get("isSearching")) and search.get("content") in ("ib_uuid", ["ib_uuid"])


def has_filter(search: dict[str, Any]) -> bool:
    return any(search.get(name) for name in ("keywords", "extension", "wrapped_conditions"))


def matched(row: Row, search: dict[str, Any], profile: Profile) -> dict[str, str] | None:
    """Return the fields that contain the words, or None if the row does not match."""
    found = _words_in(row, str(search.get("keywords") or "").casefold().split(), _contents(search))
    extension = str(search.get("extension") or "").lower()
    has_extension = not extension or _text(row, "file").rpartition(".")[2].lower() == extension
    groups = search.get("wrapped_conditions") or []
    return found if has_extension and all(_holds(row, group, profile) for group in groups) else None


def _contents(search: dict[str, Any]) -> Sequence[str]:
    given = search.get("content") or _TEXTS
    return [given] if isinstance(given, str) else given


def _words_in(row: Row, words: Sequence[str], fields: Sequence[str]) -> dict[str, str] | None:
    """Return the matching fields if every word occurs in some field."""
    texts = {field: _text(row, field) for field in fields}
    found = {
        field: text
        for field, text in texts.items()
        if any(word in text.casefold() for word in words)
    }
    return (
        found
        if all(any(word in text.casefold() for text in texts.values()) for word in words)
        else None
    )


def _text(row: Row, field: str) -> str:
    match row.get(_FIELDS.get(field, field)):
        case {"name": name}:
            return str(name)
        case list() as several:
            return " ".join(map(str, several))
        case value:
            return "" if value is None else str(value)


def _holds(row: Row, group: Sequence[Row], profile: Profile) -> bool:
    """Evaluate conditions from left to right; each says how it joins the previous ones."""
    held = True
    for at, condition in enumerate(group):
        one = _condition(condition, profile)(row)
        held = (
            one if at == 0 else (held or one) if condition.get("union") == "or" else (held and one)
        )
    return held


def _condition(condition: Row, profile: Profile) -> Callable[[Row], bool]:
    field, wanted, op = (str(condition.get(name, "")) for name in ("field", "value", "op"))
    if op == "equals":
        return lambda row: _text(row, field) == wanted
    if op not in _RANGES or field not in _TIMES or profile.ranges == "refused":
        raise BadCondition(f"{field} {op}")
    if profile.ranges == "ignored":
        return lambda row: True
    return lambda row: bool(_RANGES[op](_text(row, field), wanted))
