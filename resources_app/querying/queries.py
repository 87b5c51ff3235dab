"""Parse collection queries like `status=open&filter=title~"auth"&sort=due_date` into a queryset,
page or counts.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, F, QuerySet

from resources_app.addresses.hidden_refs import NO_EPIC, Mask, visible_refs
from resources_app.database.prepared import prepared
from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import FIELDS, HIDDEN, LONG_COLUMNS, parse_ref
from resources_app.identity.roles import Person, is_admin, may_read, visibility_key
from resources_app.models import Epic, Task
from resources_app.models.backlog import Item
from resources_app.querying import counters
from resources_app.querying.conditions import (
    EPIC_FILTERS,
    FILTERS,
    MAX_VALUES,
    Condition,
    parse_filter,
)
from resources_app.querying.cursors import SORTS, cursor_after, position_of
from resources_app.querying.evaluation import Mentions, Predicate, Ready, comparison_of
from resources_app.querying.named_values import names_reader, resolved
from resources_app.querying.snapshots import Snapshot
from resources_app.querying.weights import complete, first_within, lightened
from resources_app.vocabulary import Priority, Status

MAX_LIMIT = 200
DEFAULT_LIMIT = 50
MAX_OFFSET = 1_000_000
_EPIC_NAMES = ("epic_id", "parent_id")

GROUPS = {
    "status": "status",
    "priority": "priority",
    "assignee": "assignee__username",
    "label": "label_rows__name",
}
TASK_GROUPS = GROUPS | {"epic_id": "epic_id"}
_PAGING = ("limit", "offset", "cursor", "sort", "order", "fields")
_AGGREGATE = ("aggregate", "group_by")
_TEXTS = LONG_COLUMNS

Pairs = Sequence[tuple[str, str]]
Rows = QuerySet[Any]
Model = type[Task] | type[Epic]
# Adds columns that are the same for all callers.
Annotate = Callable[[Any], Rows]


@dataclass(frozen=True)
class CollectionQuery:
    conditions: tuple[Condition, ...] = ()
    ready: bool | None = None
    search: str = ""
    limit: int = DEFAULT_LIMIT
    offset: int = 0
    cursor: str = ""
    sort: str = "updated_at"
    descending: bool = True
    aggregate: bool = False
    group_by: str = ""
    # The fields of each item to return; empty for all of them.
    fields: tuple[str, ...] = ()
    given: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Page:
    rows: list[Any]
    total: int
    next_cursor: str | None


def parameters_for(model: type[Item]) -> list[str]:
    filters = [name for name in FILTERS if model is Task or name in EPIC_FILTERS]
    return [
        *filters,
        "filter",
        *(["ready"] if model is Task else []),
        "search",
        *_PAGING,
        *_AGGREGATE,
    ]


def parse_query(model: type[Item], pairs: Pairs) -> CollectionQuery:
    """Parse a query. Unknown parameters are rejected with the list of valid ones."""
    known = parameters_for(model)
    query = CollectionQuery(given=frozenset(name for name, _ in pairs))
    _refuse_repeated([name for name, _ in pairs])
    for name, value in pairs:
        if name not in known:
            raise ValidationFailed(
                f"Unknown parameter {name!r}.", field=name, value=value, allowed_values=known
            )
        if "\x00" in value:
            raise ValidationFailed(f"{name} must not contain NUL.", field=name)
        if name in FILTERS:
            query = _with_values(query, name, value)
        elif name == "filter":
            query = replace(query, conditions=(*query.conditions, *parse_filter(value, known)))
        else:
            query = replace(query, **_SETTINGS[name](name, value))
    return _check_together(query, model)


def query_of(user: Person, model: type[Item], pairs: Pairs) -> CollectionQuery:
    """Parse a caller's query: resolve `@me` and reject values that name nothing."""
    query = parse_query(model, pairs)
    return replace(query, conditions=resolved(query.conditions, user))


def _refuse_repeated(names: list[str]) -> None:
    """Reject repeated settings.

    Filters combine, but one of two limits or sorts would be ignored.
    """
    if repeated := [name for name in _SETTINGS if names.count(name) > 1]:
        raise ValidationFailed(f"{repeated[0]} can be given once.", field=repeated[0])


def select(rows: Rows, query: CollectionQuery) -> Rows:
    """Return the filtered rows, neither ordered nor sliced."""
    for predicate in _predicates(query):
        rows = predicate.select(rows)
    return rows


def may_select(query: CollectionQuery, item: Snapshot) -> bool:
    """Return whether the query selects the item, for at least one reader.

    Many readers watch the same query, and `@me` and `hidden` mean something else for each.
    """
    shared = tuple(one for one in query.conditions if not names_reader(one))
    predicates = _predicates(replace(query, conditions=shared))
    return all(predicate.holds(item) is not False for predicate in predicates)


def _predicates(query: CollectionQuery) -> Iterator[Predicate]:
    yield from map(comparison_of, query.conditions)
    if query.ready is not None:
        yield Ready(query.ready)
    if query.search:
        yield Mentions(query.search)


def fetch_page(rows: Rows, query: CollectionQuery) -> Page:
    """Return a page.

    It ends early if its texts exceed the size limit of a response; the cursor continues from there.
    """
    return _as_page(list(_paged(rows, query)), query, select(rows, query).count())


def as_seen_by(user: Person, query: CollectionQuery) -> CollectionQuery:
    """Treat an epic that is hidden from the user like one that does not exist."""
    if is_admin(user) or not any(one.name in _EPIC_NAMES for one in query.conditions):
        return query
    named = {value for one in query.conditions if one.name in _EPIC_NAMES for value in one.values}
    seen = visible_refs(user, named) | {
        value for value in named if parse_ref(value, Epic.PREFIX) is None
    }
    hidden = _hidden_epics(user) if HIDDEN in named else ()
    return replace(query, conditions=tuple(_seen(one, seen, hidden) for one in query.conditions))


def _seen(condition: Condition, seen: Collection[str], hidden: Sequence[str]) -> Condition:
    if condition.name not in _EPIC_NAMES:
        return condition
    values = [value if value in seen else NO_EPIC for value in condition.values if value != HIDDEN]
    return replace(
        condition, values=tuple(values + list(hidden if HIDDEN in condition.values else ()))
    )


def _hidden_epics(user: Person) -> list[str]:
    """Return the epics that `epic_id=hidden` stands for: those the user cannot see."""
    unseen = Epic.objects.filter(restricted=True).exclude(
        pk__in=Epic.objects.visible_to(user).values("pk")
    )
    return [
        Epic.make_ref(number) for number in unseen.values_list("pk", flat=True)[: MAX_VALUES - 1]
    ] or [NO_EPIC]


def fetch_live(
    model: Model, user: Person, query: CollectionQuery, annotate: Annotate | None = None
) -> Page:
    """Return a page of the live items the user can see, with the columns `annotate` adds.

    The total usually comes from the counters.
    """
    query = as_seen_by(user, query)

    def rows() -> Rows:
        visible = model.objects.live().visible_to(user)
        return annotate(visible) if annotate else visible

    if not _is_tallied(query) or not may_read(user):
        return fetch_page(rows(), query)
    total = counters.count(model, user, query.conditions)
    if query.cursor:
        return _as_page(list(_paged(rows(), query)), query, total)
    key = ("page", model, visibility_key(user), query, annotate)
    return _as_page(prepared(key, lambda: _paged(rows(), query)).run(), query, total)


def _paged(rows: Rows, query: CollectionQuery) -> Rows:
    """Fetch one row more than the page size, to detect whether there are more."""
    ordered = _order(select(rows, query), query)
    if query.cursor:
        ordered = _after(ordered, query)
    return lightened(ordered.select_related("assignee"), _texts(query), _TEXTS)[
        query.offset : query.offset + query.limit + 1
    ]


def _texts(query: CollectionQuery) -> list[str]:
    return [name for name in _TEXTS if not query.fields or name in query.fields]


def _as_page(found: list[Any], query: CollectionQuery, total: int) -> Page:
    page = found[: query.limit]
    page = page[: first_within(page)]
    cursor = (
        cursor_after(page[-1], query.sort, query.descending) if len(found) > len(page) else None
    )
    return Page(complete(page, _texts(query)), total, cursor)


def _is_tallied(query: CollectionQuery) -> bool:
    return (
        query.ready is None
        and not query.search
        and all(one.name in counters.NAMES for one in query.conditions)
    )


def count_groups(rows: Rows, query: CollectionQuery, user: Person) -> dict[str, int]:
    """Return the counts of `aggregate=count`, in total or by a field.

    Every status and priority is listed, even with zero.
    """
    if not query.group_by:
        return {"count": select(rows, query).count()}
    counted = _counted(rows, query)
    if query.group_by in counters.NAMES:
        return _named(query.group_by, counted)
    if query.group_by == "epic_id":
        return _by_epic(user, counted)
    return {
        name or "": count for name, count in counted.items() if name or query.group_by != "label"
    }


def _by_epic(user: Person, counted: dict[int | None, int]) -> dict[str, int]:
    """Group tasks by epic. All epics hidden from the user form one group."""
    refs = [Epic.make_ref(number) if number else "" for number in counted]
    groups: dict[str, int] = {}
    for ref, count in zip(Mask(user).value(refs), counted.values(), strict=True):
        groups[ref] = groups.get(ref, 0) + count
    return groups


def count_live(model: Model, user: Person, query: CollectionQuery) -> dict[str, int]:
    """Return the counts for the live items the user can see, from the counters where possible."""
    query = as_seen_by(user, query)
    if not _is_tallied(query) or query.group_by not in {"", *counters.NAMES}:
        return count_groups(model.objects.live().visible_to(user), query, user)
    if not query.group_by:
        return {"count": counters.count(model, user, query.conditions)}
    return _named(query.group_by, counters.count_by(query.group_by, model, user, query.conditions))


def _named(column: str, counted: dict[int, int]) -> dict[str, int]:
    choices: Any = Status if column == "status" else Priority
    return {choice.label: counted.get(choice.value, 0) for choice in choices}


def _counted(rows: Rows, query: CollectionQuery) -> dict[Any, int]:
    column = TASK_GROUPS[query.group_by]
    return dict(
        select(rows, query).values_list(column).annotate(count=Count("pk")).order_by(column)
    )


def _with_values(query: CollectionQuery, name: str, value: str) -> CollectionQuery:
    """Add a value. Repeating a name means OR: status=open&status=blocked."""
    for position, known in enumerate(query.conditions):
        if known.name == name and known.from_parameter:
            widened = replace(known, values=(*known.values, value))
            return replace(
                query,
                conditions=(
                    *query.conditions[:position],
                    widened,
                    *query.conditions[position + 1 :],
                ),
            )
    return replace(
        query, conditions=(*query.conditions, Condition(name, ":", (value,), from_parameter=True))
    )


def whole_number(name: str, value: str, least: int, most: int) -> int:
    if (
        not value.isascii()
        or not value.isdigit()
        or len(value) > 9
        or not least <= int(value) <= most
    ):
        raise ValidationFailed(
            f"{name} must be a whole number from {least} to {most}.", field=name, value=value
        )
    return int(value)


def one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ValidationFailed(
            f"{name} cannot be {value!r}.", field=name, value=value, allowed_values=list(allowed)
        )
    return value


_SETTINGS: dict[str, Any] = {
    "ready": lambda name, value: {"ready": one_of(name, value, ("true", "false")) == "true"},
    "search": lambda name, value: {"search": value.strip()},
    "limit": lambda name, value: {"limit": whole_number(name, value, 1, MAX_LIMIT)},
    "offset": lambda name, value: {"offset": whole_number(name, value, 0, MAX_OFFSET)},
    "cursor": lambda name, value: {"cursor": value},
    "sort": lambda name, value: {"sort": one_of(name, value, tuple(SORTS))},
    "order": lambda name, value: {"descending": one_of(name, value, ("asc", "desc")) == "desc"},
    "aggregate": lambda name, value: {"aggregate": bool(one_of(name, value, ("count",)))},
    "group_by": lambda name, value: {"group_by": one_of(name, value, tuple(TASK_GROUPS))},
    "fields": lambda name, value: {
        "fields": tuple(dict.fromkeys(word.strip() for word in value.split(",")))
    },
}


def field_names(kind: str) -> list[str]:
    """Return the fields of an item in a list, by which `fields` selects."""
    return [*FIELDS[kind], *(["parent_id"] if kind == Task.KIND else [])]


def _check_together(query: CollectionQuery, model: type[Item]) -> CollectionQuery:
    if query.group_by and not query.aggregate:
        raise ValidationFailed(
            "group_by needs aggregate=count.", field="aggregate", allowed_values=["count"]
        )
    if query.group_by and model is not Task:
        one_of("group_by", query.group_by, tuple(GROUPS))
    for name in query.fields:
        one_of("fields", name, field_names(model.KIND))
    if query.fields and query.aggregate:
        raise ValidationFailed("Use fields or aggregate, not both.", field="fields")
    one_of("sort", query.sort, [name for name in SORTS if name in FIELDS[model.KIND]])
    if query.cursor and "offset" in query.given:
        raise ValidationFailed("Use cursor or offset, not both.", field="offset")
    if "sort" in query.given and "order" not in query.given:
        query = replace(query, descending=False)
    return query


def _order(rows: Rows, query: CollectionQuery) -> Rows:
    column = SORTS[query.sort]
    columns = ["number"] if column == "number" else [column, "number"]
    return rows.order_by(
        *(F(name).desc() if query.descending else F(name).asc() for name in columns)
    )


def _after(rows: Rows, query: CollectionQuery) -> Rows:
    """Continue after the last row seen.

    `>=` lets the index find the place; the exclusion drops the rows already seen.
    """
    column = SORTS[query.sort]
    value, number = position_of(query.cursor, query.sort, query.descending)
    beyond, seen = ("lte", "gte") if query.descending else ("gte", "lte")
    return rows.filter(**{f"{column}__{beyond}": value}).exclude(
        **{column: value, f"number__{seen}": number}
    )
