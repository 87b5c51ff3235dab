"""Parse filter conditions: `filter=status:open,created_at>2026-01-01,title~"auth"`.

A comma means AND. `evaluation.py` applies them.
"""

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from resources_app.errors import ValidationFailed
from resources_app.fields.cleaning import parse_number
from resources_app.fields.declarations import FIELDS, Field, Type, parse_ref
from resources_app.vocabulary import Kind

OPERATORS = (":", "!=", ">=", "<=", ">", "<", "~")
MAX_CONDITIONS = 50
MAX_VALUES = 200
# Placeholder for the caller where a user is expected.
ME = "@me"
_RELATIVE = re.compile(r"([+-])([0-9]{1,5})([hdw])", re.ASCII)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_WRITTEN_DAY = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}|[0-9]{4}-?W[0-9]{2}(?:-?[0-9])?", re.ASCII)
_MOMENTS = frozenset({"created_at", "updated_at"})
# These filters are named first where the known ones are listed.
_MOST_USED = ("status", "epic_id", "parent_id", "assignee", "label", "priority")
_ORDERS = frozenset({">", ">=", "<", "<="})
_CLAUSE = re.compile(
    r'\s*([a-z_]+)\s*(!=|>=|<=|:|>|<|~)\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,(?!\s*$)|$)',
    re.DOTALL,
)
_FLAVOURS = {
    "equal": (":", "!="),
    "ordered": (":", "!=", ">", ">=", "<", "<="),
    "text": (":", "!=", "~"),
}


@dataclass(frozen=True)
class Condition:
    name: str
    operator: str
    values: tuple[str, ...]
    from_parameter: bool = False


@dataclass(frozen=True)
class Day:
    """Represent a calendar day in a time zone. It may have 23 or 25 hours."""

    date: datetime.date
    zone: datetime.tzinfo

    @property
    def start(self) -> datetime.datetime:
        return datetime.datetime.combine(self.date, datetime.time(), self.zone)

    @property
    def end(self) -> datetime.datetime:
        return datetime.datetime.combine(
            self.date + datetime.timedelta(days=1), datetime.time(), self.zone
        )


@dataclass(frozen=True)
class Filter:
    """Describe how a filter name is compared: its operators, its column and its value
    conversion.
    """

    flavour: str
    column: str
    convert: Callable[[str, str], Any]


def parse_filter(text: str, known_parameters: Sequence[str]) -> tuple[Condition, ...]:
    conditions: list[Condition] = []
    position = 0
    while position < len(text):
        match = _CLAUSE.match(text, position)
        if match is None or match.end() == position:
            raise ValidationFailed(
                f"filter cannot be read at {text[position : position + 40]!r}.",
                suggestion=(
                    'Write field, operator, value, joined by commas: status:open,title~"auth".'
                ),
                field="filter",
                value=text[:500],
                allowed_values=list(OPERATORS),
            )
        name, operator, quoted, bare = match.groups()
        value = re.sub(r'\\(["\\])', r"\1", quoted) if quoted is not None else bare.strip()
        conditions.append(_checked(Condition(name, operator, (value,)), known_parameters))
        position = match.end()
    if not 1 <= len(conditions) <= MAX_CONDITIONS:
        raise ValidationFailed(
            f"filter takes 1 to {MAX_CONDITIONS} conditions.", field="filter", value=text[:500]
        )
    return tuple(conditions)


def _checked(condition: Condition, known_parameters: Sequence[str]) -> Condition:
    known = [name for name in FILTERS if name in known_parameters]
    if condition.name not in known:
        raise ValidationFailed(
            f"Unknown field {condition.name!r} in filter.",
            field=condition.name,
            value=condition.values[0],
            allowed_values=known,
        )
    operators = _FLAVOURS[FILTERS[condition.name].flavour]
    if condition.operator not in operators:
        raise ValidationFailed(
            f"{condition.name} cannot be compared with {condition.operator!r}.",
            field=condition.name,
            value=condition.operator,
            allowed_values=list(operators),
        )
    return condition


def converted(condition: Condition) -> tuple[Any, ...]:
    """Convert the values to those of the column. Raises ValidationFailed if one does not fit."""
    if len(condition.values) > MAX_VALUES:
        raise ValidationFailed(
            f"{condition.name} takes {MAX_VALUES} values at most.", field=condition.name
        )
    _refuse_equal_to_interval(condition)
    convert = FILTERS[condition.name].convert
    values = tuple(convert(condition.name, value) for value in condition.values)
    if condition.operator in _ORDERS and None in values:
        raise ValidationFailed(
            f"{condition.name}{condition.operator} needs a value.", field=condition.name, value=""
        )
    return values


def _refuse_equal_to_interval(condition: Condition) -> None:
    """Reject equality with a relative time: nothing changed exactly 24 hours ago, so it would never
    match.
    """
    if condition.name in _MOMENTS and condition.operator in {":", "!="}:
        for value in filter(_RELATIVE.fullmatch, condition.values):
            raise ValidationFailed(
                f"{condition.name} cannot equal {value!r}.",
                suggestion=f"Compare with an order: filter={condition.name}>{value}.",
                field=condition.name,
                value=value,
            )


def _choice(vocabulary: Any) -> Callable[[str, str], Any]:
    def convert(name: str, value: str) -> Any:
        if value not in vocabulary.labels:
            raise ValidationFailed(
                f"{name} cannot be {value!r}.",
                field=name,
                value=value,
                allowed_values=list(vocabulary.labels),
            )
        return vocabulary[value.upper()]

    return convert


def _number(prefix: str) -> Callable[[str, str], int | None]:
    def convert(name: str, value: str) -> int | None:
        if not value:
            return None
        number = parse_ref(value, prefix)
        if number is None:
            raise ValidationFailed(
                f"{name} must be an id like {prefix}-0001.", field=name, value=value
            )
        return number

    return convert


def _person(name: str, value: str) -> str | None:
    return value or None


def _moment(name: str, value: str) -> Day | datetime.datetime:
    """Parse a date or time.

    A date is the whole day in the caller's time zone; a time or a relative interval is a moment.
    """
    zone = timezone.get_current_timezone()
    try:
        if relative := _RELATIVE.fullmatch(value):
            return _in_range(timezone.now() + _interval(*relative.groups()))
        if value == "today":
            return Day(timezone.localdate(), zone)
        moment = _in_range(datetime.datetime.fromisoformat(value))
    except (ValueError, OverflowError):
        raise ValidationFailed(
            f"{name} must be a date or time: 2026-01-31, 2026-01-31T12:00:00Z, today, -24h or -7d.",
            field=name,
            value=value,
        ) from None
    if _WRITTEN_DAY.fullmatch(value):
        return Day(moment.date(), zone)
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=zone)


def _interval(sign: str, count: str, unit: str) -> datetime.timedelta:
    length = datetime.timedelta(**{_UNITS[unit]: int(count)})
    return -length if sign == "-" else length


def _in_range(moment: datetime.datetime) -> datetime.datetime:
    """Reject years near the limits, where arithmetic with days and time zones overflows."""
    if not 1000 <= moment.year <= 9000:
        raise ValueError
    return moment


def as_day(name: str, value: str) -> datetime.date | None:
    """Parse a value for a date column. An empty value means none."""
    if not value:
        return None
    found = _moment(name, value)
    return found.date if isinstance(found, Day) else timezone.localdate(found)


def as_number(name: str, value: str) -> float | None:
    """Parse a value for a number column. An empty value means none."""
    if not value:
        return None
    number = parse_number(value)
    if number is None:
        raise ValidationFailed(f"{name} must be a number like 3 or 2.5.", field=name, value=value)
    return number


def _word(name: str, value: str) -> str:
    return value


def _any_number(name: str, value: str) -> int:
    number = parse_ref(value, "TASK") or parse_ref(value, "EPIC")
    if number is None:
        raise ValidationFailed(f"{name} must be an id like TASK-0001.", field=name, value=value)
    return number


# How the value of a filter is read, by type of field.
_CONVERSIONS: dict[Type, Callable[[str, str], Any]] = {
    "epic": _number("EPIC"),
    "tasks": _number("TASK"),
    "person": _person,
    "words": _word,
    "text": _word,
    "markdown": _word,
    "date": as_day,
    "moment": _moment,
    "number": as_number,
    "id": _any_number,
}


def _filter(field: Field) -> Filter:
    convert = _choice(field.vocabulary) if field.vocabulary else _CONVERSIONS[field.type]
    return Filter(field.compared, field.filter_name or field.column or field.name, convert)


def _filters(kind: str) -> dict[str, Filter]:
    found = {
        name: _filter(field)
        for field in FIELDS[kind].values()
        if field.compared
        for name in (field.filter_name or field.name, *field.aliases)
    }
    return {name: found[name] for name in (*_MOST_USED, *found) if name in found}


FILTERS: dict[str, Filter] = _filters(Kind.TASK)
EPIC_FILTERS = frozenset(_filters(Kind.EPIC))
