"""Present a task as a card of the board or a row of a list."""

import datetime
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils import timezone

from backlog_site.viewer.queries.people import Member, member_of
from resources_app.history.etags import make_etag
from resources_app.identity.roles import Person
from resources_app.models import Change, Epic, Task
from resources_app.vocabulary import Kind, Priority, Status

HUES = 6
_BOX = re.compile(r"^[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\[([ xX])\](?=\s)", re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """Hold the minimum that identifies a task or an epic."""

    ref: str
    title: str
    status: str

    @property
    def hue(self) -> int:
        return int(self.ref.rpartition("-")[2]) % HUES


@dataclass(frozen=True)
class Card:
    ref: str
    title: str
    status: str
    priority: str
    assignee: Member | None
    epic: Line | None
    labels: tuple[str, ...]
    due_date: datetime.date | None
    updated_at: datetime.datetime
    version: int
    # ETags of only the status and the epic: a move conflicts only with another move.
    etag: str
    epic_etag: str
    # The agent that made the last change, if any.
    agent: str
    ticked: int
    boxes: int

    @property
    def is_late(self) -> bool:
        return bool(self.due_date and self.due_date < timezone.localdate())


def line_of(item: Task | Epic) -> Line:
    return Line(item.ref, item.title, Status(item.status).label)


def lines_of(items: QuerySet[Any]) -> list[Line]:
    """Return the lines of tasks or epics without loading their other columns."""
    return [line_of(item) for item in items.only("number", "title", "status")]


def with_last_agent(rows: QuerySet[Task]) -> QuerySet[Any]:
    last = Change.objects.filter(
        kind=Kind.TASK, object_id=OuterRef("pk"), version=OuterRef("version")
    )
    return rows.annotate(last_agent=Subquery(last.values("agent")[:1]))


def cards_of(user: Person, tasks: Iterable[Any]) -> list[Card]:
    """Build cards from rows of `with_last_agent`, with their assignees.

    The epics take one more query.
    """
    tasks = list(tasks)
    wanted = {task.epic_id for task in tasks if task.epic_id}
    epics = lines_of(Epic.objects.visible_to(user).filter(pk__in=wanted)) if wanted else []
    lines = {line.ref: line for line in epics}
    return [_card(task, lines.get(Epic.make_ref(task.epic_id or 0))) for task in tasks]


def _card(task: Any, epic: Line | None) -> Card:
    boxes = _BOX.findall(task.description)
    return Card(
        ref=task.ref,
        title=task.title,
        status=Status(task.status).label,
        priority=Priority(task.priority).label,
        assignee=member_of(task.assignee) if task.assignee else None,
        epic=epic,
        labels=tuple(task.labels),
        due_date=task.due_date,
        updated_at=task.updated_at,
        version=task.version,
        etag=_etag(task, "status"),
        epic_etag=_etag(task, "epic_id"),
        agent=task.last_agent or "",
        ticked=sum(box != " " for box in boxes),
        boxes=len(boxes),
    )


def _etag(task: Any, name: str) -> str:
    return make_etag(task.ref, task.field_versions.get(name, 1), name)
