"""Conditions of a collection query: `filter=status:open,created_at>2026-01-01,title~"auth"`; comma means and."""

import datetime
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from resources_app.errors import ValidationFailed
from resources_app.fields import parse_ref
from resources_app.vocabulary import Priority, Status

OPERATORS = (":", "!=", ">=", "<=", ">", "<", "~")
MAX_CONDITIONS = 50
MAX_VALUES = 200
_LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_CLAUSE = re.compile(
    r'\s*([a-z_]+)\s*(!=|>=|<=|:|>|<|~)\s*(?:"((?:[^"\\]|\\.)*)"|([^,"]*))\s*(?:,(?!\s*$)|$)', re.DOTALL
)
_FLAVOURS = {"equal": (":", "!="), "ordered": (":", "!=", ">", ">=", "<", "<="), "text": (":", "!=", "~")}


@dataclass(frozen=True)
class Condition:
    name: str
    operator: str
    values: tuple[str, ...]
    from_parameter: bool = False


@dataclass(frozen=True)
class Filter:
    """How one name is compared: which operators it takes, its column, and how its words become values."""

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
                suggestion='Write field, operator, value, joined by commas: status:open,title~"auth".',
                field="filter",
                value=text[:500],
                allowed_values=list(OPERATORS),
            )
        name, operator, quoted, bare = match.groups()
        value = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if quoted is not None else bare.strip()
        conditions.append(_checked(Condition(name, operator, (value,)), known_parameters))
        position = match.end()
    if not 1 <= len(conditions) <= MAX_CONDITIONS:
        raise ValidationFailed(f"filter takes 1 to {MAX_CONDITIONS} conditions.", field="filter", value=text[:500])
    return tuple(conditions)


def filter_rows(rows: QuerySet[Any], conditions: Sequence[Condition]) -> QuerySet[Any]:
    for condition in conditions:
        rows = rows.filter(_as_q(rows, condition))
    return rows


def _checked(condition: Condition, known_parameters: Sequence[str]) -> Condition:
    known = [name for name in FILTERS if name in known_parameters]
    if condition.name not in known:
        raise ValidationFailed(
            f"filter knows no field {condition.name!r}.",
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


def _as_q(rows: QuerySet[Any], condition: Condition) -> Q:
    chosen = FILTERS[condition.name]
    if len(condition.values) > MAX_VALUES:
        raise ValidationFailed(f"{condition.name} takes {MAX_VALUES} values at most.", field=condition.name)
    values = [chosen.convert(condition.name, value) for value in condition.values]
    if chosen.column == "label":
        labelled = Q(pk__in=rows.model.label_rows.rel.related_model.objects.filter(name__in=values).values("item"))
        return ~labelled if condition.operator == "!=" else labelled
    if condition.operator == "~":
        return Q(**{f"{chosen.column}__icontains": values[0]})
    if condition.operator in _LOOKUPS:
        return Q(**{f"{chosen.column}__{_LOOKUPS[condition.operator]}": values[0]})
    return _equal(chosen, values, negated=condition.operator == "!=")


def _equal(chosen: Filter, values: list[Any], *, negated: bool) -> Q:
    """An empty value means "none": assignee= finds what nobody has."""
    if chosen.column in {"created_at", "updated_at"}:
        matched = Q()
        for value in values:
            matched |= _during(chosen.column, value)
    else:
        given = [value for value in values if value is not None]
        matched = Q(**{f"{chosen.column}__in": given}) if given else Q()
        if len(given) < len(values):
            matched |= Q(**{f"{chosen.column}__isnull": True})
    return ~matched if negated else matched


def _during(column: str, moment: datetime.datetime) -> Q:
    """A date means its whole day, a time that very moment."""
    if moment.time() != datetime.time():
        return Q(**{column: moment})
    return Q(**{f"{column}__gte": moment, f"{column}__lt": moment + datetime.timedelta(days=1)})


def _status(name: str, value: str) -> Status:
    return Status(_named(name, value, Status))


def _priority(name: str, value: str) -> Priority:
    return Priority(_named(name, value, Priority))


def _named(name: str, value: str, choices: Any) -> int:
    if value not in choices.labels:
        raise ValidationFailed(
            f"{name} cannot be {value!r}.", field=name, value=value, allowed_values=list(choices.labels)
        )
    return int(choices.values[choices.labels.index(value)])


def _number(prefix: str) -> Callable[[str, str], int | None]:
    def convert(name: str, value: str) -> int | None:
        if not value:
            return None
        number = parse_ref(value, prefix)
        if number is None:
            raise ValidationFailed(f"{name} must be an id like {prefix}-0001.", field=name, value=value)
        return number

    return convert


def _person(name: str, value: str) -> int | None:
    """Usernames become ids first, so that the filter runs on the index of the table itself."""
    if not value:
        return None
    return User.objects.filter(username=value).values_list("pk", flat=True).first() or 0


def _moment(name: str, value: str) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(value)
        if not 1000 <= moment.year <= 9000:  # nearer the ends, arithmetic with days and time zones overflows
            raise ValueError
    except ValueError:
        raise ValidationFailed(
            f"{name} must be a date or time as 2026-01-31 or 2026-01-31T12:00:00Z.", field=name, value=value
        ) from None
    return moment if timezone.is_aware(moment) else moment.replace(tzinfo=datetime.UTC)


def _day(name: str, value: str) -> datetime.date | None:
    if not value:
        return None
    return _moment(name, value).date()


def _word(name: str, value: str) -> str:
    return value


def _any_number(name: str, value: str) -> int:
    number = parse_ref(value, "TASK") or parse_ref(value, "EPIC")
    if number is None:
        raise ValidationFailed(f"{name} must be an id like TASK-0001.", field=name, value=value)
    return number


FILTERS: dict[str, Filter] = {
    "status": Filter("equal", "status", _status),
    "epic_id": Filter("equal", "epic_id", _number("EPIC")),
    "parent_id": Filter("equal", "epic_id", _number("EPIC")),
    "assignee": Filter("equal", "assignee_id", _person),
    "label": Filter("equal", "label", _word),
    "priority": Filter("ordered", "priority", _priority),
    "id": Filter("equal", "number", _any_number),
    "title": Filter("text", "title", _word),
    "description": Filter("text", "description", _word),
    "due_date": Filter("ordered", "due_date", _day),
    "created_at": Filter("ordered", "created_at", _moment),
    "updated_at": Filter("ordered", "updated_at", _moment),
}
