"""Encode the place in a sorted list after which its next page begins."""

import base64
import binascii
import datetime
import json
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import FIELDS, Type
from resources_app.vocabulary import Kind

# Sort name → column. Each has an index that ends with the number, so that a page is read without
# sorting.
SORTS = {field.name: field.sort_column for field in FIELDS[Kind.TASK].values() if field.sort_column}


def cursor_after(row: Any, sort: str, descending: bool) -> str:
    value = getattr(row, SORTS[sort])
    plain = value.isoformat() if isinstance(value, datetime.date) else value
    position = json.dumps([sort, descending, plain, row.number])
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def position_of(cursor: str, sort: str, descending: bool) -> tuple[Any, int]:
    """Return the value and number of the last row seen. Raises ValidationFailed."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        *order, value, number = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
        if order != [sort, descending] or not isinstance(number, int) or abs(number) > 2**62:
            raise ValueError
        return _VALUES[sort](value), number
    except (ValueError, TypeError, UnicodeEncodeError, binascii.Error, RecursionError):
        raise ValidationFailed(
            "cursor must be the next_cursor of an answer with the same sort and order.",
            field="cursor",
            value=cursor,
        ) from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or "\x00" in value:
        raise ValueError
    value.encode()
    return value


def _small(value: Any) -> int:
    if not isinstance(value, int) or abs(value) > 2**62:
        raise ValueError
    return value


def _amount(value: Any) -> float:
    if not isinstance(value, int | float) or not abs(value) < 2**62:
        raise ValueError
    return value


# How the value in a cursor is read, by type of field.
_TYPES: dict[Type, Any] = {
    "id": _small,
    "text": _text,
    "choice": _small,
    "number": _amount,
    "date": datetime.date.fromisoformat,
    "moment": datetime.datetime.fromisoformat,
}
_VALUES = {name: _TYPES[FIELDS[Kind.TASK][name].type] for name in SORTS}
