"""Evaluate the query language, on rows and on documents.

Every comparison has both forms side by side: `as_q` selects rows in the database and `accepts`
decides about a value of a document. A list and the subscriptions to it therefore agree.
"""

import datetime
import operator
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet

from resources_app.querying.conditions import FILTERS, Condition, Day, converted
from resources_app.querying.snapshots import UNKNOWN, Snapshot

Rows = QuerySet[Any]
# None: it depends on a value that is not known.
Verdict = bool | None


class Predicate(Protocol):
    def select(self, rows: Rows) -> Rows: ...

    def holds(self, item: Snapshot) -> Verdict: ...


class Comparison(ABC):
    """Compare one column."""

    column: str

    @abstractmethod
    def as_q(self, model: Any) -> Q: ...

    @abstractmethod
    def accepts(self, value: Any) -> bool: ...

    def select(self, rows: Rows) -> Rows:
        return rows.filter(self.as_q(rows.model))

    def holds(self, item: Snapshot) -> Verdict:
        value = item.value(self.column)
        return None if value is UNKNOWN else self.accepts(value)


@dataclass(frozen=True)
class OneOf(Comparison):
    """Match any of the values. None matches an empty field: assignee= finds unassigned items."""

    column: str
    values: tuple[Any, ...]

    def as_q(self, model: Any) -> Q:
        given = [value for value in self.values if value is not None]
        matched = Q(**{f"{self.column}__in": given}) if given else Q()
        if len(given) < len(self.values):
            matched |= Q(**{f"{self.column}__isnull": True})
        return matched

    def accepts(self, value: Any) -> bool:
        return value in self.values


@dataclass(frozen=True)
class AssignedTo(Comparison):
    """Match usernames, which documents contain. Rows have ids, and an index on them."""

    column: str
    names: tuple[str | None, ...]

    def as_q(self, model: Any) -> Q:
        return OneOf(self.column, tuple(name and _user_id(name) for name in self.names)).as_q(model)

    def accepts(self, value: Any) -> bool:
        return value in self.names


@dataclass(frozen=True)
class Labelled(Comparison):
    """Match items that have any of the labels."""

    column: str
    names: tuple[str, ...]

    def as_q(self, model: Any) -> Q:
        labels = model.label_rows.rel.related_model.objects
        return Q(pk__in=labels.filter(name__in=self.names).values("item"))

    def accepts(self, value: Any) -> bool:
        return any(name in value for name in self.names)


@dataclass(frozen=True)
class DependsOn(Comparison):
    """Match tasks that depend on any of the tasks. None matches tasks without dependencies."""

    column: str
    numbers: tuple[int | None, ...]

    def as_q(self, model: Any) -> Q:
        dependencies = model.dependency_rows.rel.related_model.objects
        needed = [number for number in self.numbers if number]
        matched = Q(pk__in=dependencies.filter(needs__in=needed).values("task"))
        if None in self.numbers:
            matched |= ~Q(pk__in=dependencies.values("task"))
        return matched

    def accepts(self, value: Any) -> bool:
        return any(number in value for number in self.numbers) or (
            None in self.numbers and not value
        )


@dataclass(frozen=True)
class Contains(Comparison):
    """Match a substring regardless of case, as the database in use folds case.

    SQLite's LIKE ignores case for ASCII letters only, so other text uses its regular expressions,
    which are Python's. PostgreSQL compares in upper case, letter by letter.
    """

    column: str
    text: str

    def as_q(self, model: Any) -> Q:
        if connection.vendor == "sqlite" and not self.text.isascii():
            return Q(**{f"{self.column}__iregex": re.escape(self.text)})
        return Q(**{f"{self.column}__icontains": self.text})

    def accepts(self, value: Any) -> bool:
        if connection.vendor != "sqlite":
            return self.text.translate(_UPPER_CASE) in value.translate(_UPPER_CASE)
        if self.text.isascii():
            return self.text.encode().lower() in value.encode().lower()  # bytes: ASCII only
        return re.search(re.escape(self.text), value, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Ordered(Comparison):
    """Compare with a bound. An empty field is neither before nor after it."""

    column: str
    operator: str
    bound: Any

    def as_q(self, model: Any) -> Q:
        return Q(**{f"{self.column}__{_ORDERS[self.operator][0]}": self.bound})

    def accepts(self, value: Any) -> bool:
        return value is not None and _ORDERS[self.operator][1](value, self.bound)


@dataclass(frozen=True)
class Between(Comparison):
    """Match from a start up to an end, which is excluded."""

    column: str
    start: datetime.datetime
    end: datetime.datetime

    def as_q(self, model: Any) -> Q:
        return Q(**{f"{self.column}__gte": self.start, f"{self.column}__lt": self.end})

    def accepts(self, value: Any) -> bool:
        return bool(self.start <= value < self.end)


@dataclass(frozen=True)
class AnyOf(Comparison):
    column: str
    parts: tuple[Comparison, ...]

    def as_q(self, model: Any) -> Q:
        matched = Q()
        for part in self.parts:
            matched |= part.as_q(model)
        return matched

    def accepts(self, value: Any) -> bool:
        return any(part.accepts(value) for part in self.parts)


@dataclass(frozen=True)
class Not(Comparison):
    """Match everything else, empty fields included."""

    column: str
    part: Comparison

    def as_q(self, model: Any) -> Q:
        return ~self.part.as_q(model)

    def accepts(self, value: Any) -> bool:
        return not self.part.accepts(value)


@dataclass(frozen=True)
class Ready:
    """Match open tasks whose dependencies are finished, or all others."""

    wanted: bool

    def select(self, rows: Rows) -> Rows:
        return rows.ready(self.wanted)  # type: ignore[attr-defined,no-any-return]  # only tasks have the parameter

    def holds(self, item: Snapshot) -> Verdict:
        return item.is_ready is self.wanted


@dataclass(frozen=True)
class Mentions:
    """Match items that contain every word in their indexed text, comments included."""

    words: str

    def select(self, rows: Rows) -> Rows:
        return rows.mentioning(self.words)  # type: ignore[attr-defined,no-any-return]  # tasks and epics

    def holds(self, item: Snapshot) -> Verdict:
        return item.text.has_every_word(self.words)


def filter_rows(rows: Rows, conditions: Sequence[Condition]) -> Rows:
    for condition in conditions:
        rows = comparison_of(condition).select(rows)
    return rows


def comparison_of(condition: Condition) -> Comparison:
    """Return what a condition compares. Raises ValidationFailed if a value does not fit."""
    column = FILTERS[condition.name].column
    values = converted(condition)
    if condition.operator == "~":
        return Contains(column, values[0])
    if condition.operator in _ORDERS:
        return _ordered(column, condition.operator, values[0])
    equal = _equal(column, values)
    return Not(column, equal) if condition.operator == "!=" else equal


def _ordered(column: str, order: str, value: Any) -> Comparison:
    """Compare with a value.

    A day is treated as a whole: `>` means after its end, `<=` up to its end.
    """
    if isinstance(value, Day):
        bound = value.end if order in {">", "<="} else value.start
        return Ordered(column, ">=" if order in {">", ">="} else "<", bound)
    return Ordered(column, order, value)


def _equal(column: str, values: tuple[Any, ...]) -> Comparison:
    if any(isinstance(value, Day) for value in values):
        return AnyOf(column, tuple(_during(column, value) for value in values))
    return _EQUAL.get(column, OneOf)(column, values)


def _during(column: str, value: Day | datetime.datetime) -> Comparison:
    if isinstance(value, Day):
        return Between(column, value.start, value.end)
    return OneOf(column, (value,))


def _user_id(name: str) -> int:
    return User.objects.filter(username=name).values_list("pk", flat=True).first() or 0


class _UpperCase(dict[int, str]):
    """Map letters to upper case one by one: ß has no single upper-case letter and stays."""

    def __missing__(self, code: int) -> str:
        upper = chr(code).upper()
        self[code] = upper if len(upper) == 1 else chr(code)
        return self[code]


_UPPER_CASE = _UpperCase()
# How a column is compared for equality, where its values are not simply those of the rows.
_EQUAL: dict[str, Callable[[str, tuple[Any, ...]], Comparison]] = {
    "assignee_id": AssignedTo,
    "label": Labelled,
    "depends_on": DependsOn,
}
# Operator → its lookup in the database and its function in Python.
_ORDERS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    ">": ("gt", operator.gt),
    ">=": ("gte", operator.ge),
    "<": ("lt", operator.lt),
    "<=": ("lte", operator.le),
}
