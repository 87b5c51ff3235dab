"""Query tasks in sections, the columns of the board and the groups of the list.

Each section is paged separately.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Exists, OuterRef

from backlog_site.viewer.queries.cards import (
    Card,
    Line,
    cards_of,
    line_of,
    lines_of,
    with_last_agent,
)
from backlog_site.viewer.queries.people import Member, team
from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import HIDDEN, parse_ref
from resources_app.identity.roles import Person
from resources_app.models import Epic, Task, TaskLabel
from resources_app.querying import counters
from resources_app.querying.conditions import Condition
from resources_app.querying.queries import (
    CollectionQuery,
    Pairs,
    as_seen_by,
    count_live,
    fetch_live,
    parse_query,
    select,
)
from resources_app.vocabulary import UNFINISHED, Priority, Status

GROUPINGS = ("status", "priority", "epic_id", "assignee", "none")
# Further sections show only their heading, with a link to them.
MAX_OPEN_SECTIONS = 20
MAX_REFS = 200
_UNFINISHED = tuple(Status(status).label for status in UNFINISHED)


@dataclass(frozen=True)
class Section:
    key: str
    label: str
    total: int
    cards: list[Card]
    next_cursor: str | None = None

    @property
    def by_status(self) -> dict[str, list[Card]]:
        """Return the cards by status, as a lane of the board shows them."""
        return {
            status: [card for card in self.cards if card.status == status]
            for status in Status.labels
        }


@dataclass(frozen=True)
class Choices:
    """Hold the options of the filters."""

    epics: list[Line]
    people: list[Member]
    labels: list[str]


def choices(user: Person) -> Choices:
    epics = Epic.objects.visible_to(user).live().order_by("number")
    # A condition per row lets SQLite skip to the next name once a task is found.
    labels = TaskLabel.objects.filter(Exists(_visible(user).filter(pk=OuterRef("item_id"))))
    labels = labels.order_by("name")
    return Choices(
        lines_of(epics[:200]),
        team(),
        list(labels.values_list("name", flat=True).distinct()[:100]),
    )


def sections(user: Person, pairs: Pairs, group_by: str, limit: int) -> list[Section]:
    """Return every section with its count and its first page.

    Statuses and priorities are included even when empty.
    """
    query = _query(user, pairs, limit)
    if group_by == "none":
        return [_page(user, query, "", "All tasks")]
    _refuse_unknown(group_by)
    counts = count_live(Task, user, replace(query, aggregate=True, group_by=group_by))
    names = _names(user, group_by, counts)
    ordered = (
        sorted(counts, key=names.index)
        if group_by in {"status", "priority"}
        else sorted(counts, key=_last_empty)
    )
    if group_by == "priority":
        ordered.reverse()
    return [
        _section(
            user,
            query,
            group_by,
            key,
            label_of(names, key),
            counts[key],
            is_open=place < MAX_OPEN_SECTIONS,
        )
        for place, key in enumerate(ordered)
    ]


def more(user: Person, pairs: Pairs, group_by: str, key: str, cursor: str, limit: int) -> Section:
    """Return the next page of one section."""
    query = replace(_query(user, pairs, limit), cursor=cursor)
    if group_by == "none":
        return _page(user, query, "", "All tasks")
    _refuse_unknown(group_by)
    return _page(user, as_seen_by(user, _within(query, group_by, key)), key, key)


def counts(user: Person, pairs: Pairs, group_by: str) -> dict[str, int]:
    everything = replace(_query(user, pairs, 1), aggregate=True)
    if group_by == "none":
        return {"": count_live(Task, user, everything)["count"]}
    _refuse_unknown(group_by)
    return count_live(Task, user, replace(everything, group_by=group_by))


def cards(user: Person, pairs: Pairs, refs: Collection[str]) -> list[Card]:
    """Return the tasks that the filters select. Changes made elsewhere are fetched by ref."""
    numbers = [number for ref in list(refs)[:MAX_REFS] if (number := parse_ref(ref, Task.PREFIX))]
    rows = select(_visible(user).filter(pk__in=numbers), _query(user, pairs, 1))
    return cards_of(user, with_last_agent(rows.select_related("assignee")))


def titles(user: Person, limit: int) -> list[Line]:
    """Return the most recently changed items, for the search box to match locally."""
    found: list[Task | Epic] = []
    for model in (Epic, Task):
        rows: Any = model.objects.visible_to(user).live().order_by("-updated_at", "-number")
        found += rows.only("number", "title", "status", "updated_at")[:limit]
    return [line_of(item) for item in sorted(found, key=lambda item: item.updated_at, reverse=True)]


def open_count(user: Person) -> int:
    return counters.count(Task, user, (Condition("status", ":", _UNFINISHED),))


def label_of(names: Any, key: str) -> str:
    return (
        str(names.get(key, key)) if isinstance(names, dict) else key.replace("_", " ").capitalize()
    )


def _visible(user: Person) -> Any:
    return Task.objects.visible_to(user).live()


def _query(user: Person, pairs: Pairs, limit: int) -> CollectionQuery:
    """Return the query of a page. Of the texts, a card shows the boxes of the description alone."""
    query = as_seen_by(user, parse_query(Task, pairs))
    return replace(query, limit=limit, fields=("description",))


def _names(user: Person, group_by: str, found: dict[str, int]) -> Any:
    """Return the order of closed sets, or the labels of the keys."""
    if group_by == "status":
        return list(Status.labels)
    if group_by == "priority":
        return list(Priority.labels)
    if group_by == "assignee":
        return {"": "Unassigned"} | {one.username: one.name for one in team()}
    numbers = [number for ref in found if (number := parse_ref(ref, Epic.PREFIX))]
    epics = lines_of(Epic.objects.visible_to(user).filter(pk__in=numbers))
    return {"": "No epic", HIDDEN: "Hidden epic"} | {epic.ref: epic.title for epic in epics}


def _last_empty(key: str) -> tuple[bool, str]:
    return (not key, key)


def _refuse_unknown(group_by: str) -> None:
    if group_by not in GROUPINGS:
        raise ValidationFailed(
            f"Tasks cannot be grouped by {group_by!r}.",
            field="group",
            value=group_by,
            allowed_values=list(GROUPINGS),
        )


def _section(
    user: Person,
    query: CollectionQuery,
    group_by: str,
    key: str,
    label: str,
    total: int,
    *,
    is_open: bool,
) -> Section:
    if not total or not is_open:
        return Section(key, label, total, [])
    return _page(user, as_seen_by(user, _within(query, group_by, key)), key, label)


def _within(query: CollectionQuery, group_by: str, key: str) -> CollectionQuery:
    return replace(query, conditions=(*query.conditions, Condition(group_by, ":", (key,))))


def _page(user: Person, query: CollectionQuery, key: str, label: str) -> Section:
    page = fetch_live(Task, user, query, with_last_agent)
    return Section(key, label, page.total, cards_of(user, page.rows), page.next_cursor)
