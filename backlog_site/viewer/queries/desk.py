"""Query what needs a user's attention: at most seven items, the most severe first, each with its
reason.
"""

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from backlog_site.viewer.queries.cards import Line, line_of
from resources_app.identity.roles import is_admin
from resources_app.models import Job, Task
from resources_app.vocabulary import UNFINISHED, Priority, Status

MOST = 7
STALE = datetime.timedelta(days=14)
SOON = datetime.timedelta(days=3)
RECENTLY = datetime.timedelta(days=2)


@dataclass(frozen=True)
class AttentionItem:
    """Hold an item that needs attention. `verb` is the one action to take."""

    line: Line
    why: str
    verb: str
    url: str


def matters(user: User, put_off: Collection[str] = ()) -> list[AttentionItem]:
    """Return the items, without those the user put off for today."""
    failed = _failed_jobs() if is_admin(user) else []
    found = [matter for matter in failed if matter.line.ref not in put_off]
    known = set(put_off)
    for rows, why, verb in _questions(user):
        for task in rows[:MOST]:
            if task.ref not in known and len(found) < MOST:
                known.add(task.ref)
                found.append(AttentionItem(line_of(task), why(task), verb, f"/t/{task.ref}/"))
    return found[:MOST]


def next_up(user: User) -> list[Line]:
    """Return tasks ready to start that are unassigned or assigned to the user."""
    rows = Task.objects.visible_to(user).live().ready().filter(Q(assignee=user) | Q(assignee=None))
    return [line_of(task) for task in rows.order_by("-priority", "number")[:5]]


def _questions(user: User) -> list[tuple[Any, Any, str]]:
    """Return one query per index: the user's blocked, late, due and stale tasks, and urgent
    unassigned ones.
    """
    today, now = timezone.localdate(), timezone.now()
    unfinished = Task.objects.visible_to(user).live().filter(status__in=UNFINISHED)
    mine = unfinished.filter(assignee=user)
    blocked = mine.filter(status=Status.BLOCKED).order_by("-priority", "number")
    late = mine.filter(due_date__lt=today).order_by("due_date", "number")
    due = mine.filter(due_date__range=(today, today + SOON)).order_by("due_date", "number")
    stale = mine.filter(status=Status.IN_PROGRESS, updated_at__lt=now - STALE)
    unassigned = unfinished.filter(assignee=None, priority=Priority.URGENT).order_by("number")
    important = mine.filter(status=Status.OPEN, priority__gte=Priority.HIGH)
    return [
        (blocked, _blocked, "Unblock"),
        (late, _late, "Reschedule"),
        (due, _due, "Look"),
        (stale.order_by("updated_at"), _stale, "Post an update"),
        (unassigned, _unassigned, "Take it"),
        (important.order_by("-priority", "number"), _important, "Start"),
    ]


def _blocked(task: Task) -> str:
    return (
        f"Blocked: {task.blocked_reason[-1]}"[:200]
        if task.blocked_reason
        else "Blocked, no reason given"
    )


def _late(task: Task) -> str:
    return f"Was due {task.due_date:%-d %b}"


def _due(task: Task) -> str:
    return f"Due {task.due_date:%-d %b}"


def _stale(task: Task) -> str:
    return f"In progress, and nothing written for {(timezone.now() - task.updated_at).days} days"


def _unassigned(task: Task) -> str:
    return "Urgent and unassigned"


def _important(task: Task) -> str:
    return f"{Priority(task.priority).label.capitalize()} priority, not begun"


def _failed_jobs() -> list[AttentionItem]:
    failed = Job.objects.filter(state=Job.State.FAILED, finished_at__gt=timezone.now() - RECENTLY)
    last = failed.order_by("-finished_at").first()
    if last is None:
        return []
    line = Line(f"JOB-{last.pk:04d}", f"{last.kind} failed", "blocked")
    return [AttentionItem(line, last.last_error[:200], "Look", "/sync/")]
