"""Compute the flow of work: the number of tasks per status on each day, from the history of
statuses.
"""

import datetime
import statistics
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Case, Count, DateTimeField, Func, OuterRef, QuerySet, Subquery, When
from django.db.models.fields.json import KT
from django.utils import timezone

from resources_app.identity.roles import Person
from resources_app.models import Change, Revision, Task
from resources_app.vocabulary import Kind, Status

RANGES = (30, 60, 90)
_OVER = {"done", "cancelled"}

# Task, time, status, and whether an agent set it.
Step = tuple[int, datetime.datetime, str, bool]
# Day of creation, or None for one before the range; status; whether an agent created it.
Created = tuple[datetime.date | None, str, bool]


@dataclass(frozen=True)
class Week:
    """Hold seven days: scope and done on the last one, and the tasks completed during all of
    them.
    """

    last_day: datetime.date
    scope: int
    done: int
    finished: int


@dataclass(frozen=True)
class Flow:
    """Hold one number per day in each series. `done` and `scope` leave out cancelled tasks."""

    days: list[datetime.date]
    standing: dict[str, list[int]]
    scope: list[int]
    done: list[int]
    finished: list[int]
    finished_by_agents: list[int]
    cycle_days: list[float]
    total: int

    @property
    def median_cycle(self) -> float | None:
        return round(statistics.median(self.cycle_days), 1) if self.cycle_days else None

    @property
    def slow_cycle(self) -> float | None:
        """Return the 85th percentile of the cycle time: six of seven tasks took no longer."""
        found = sorted(self.cycle_days)
        return round(found[int(len(found) * 0.85)], 1) if found else None

    @property
    def agent_share(self) -> int | None:
        """Return the percentage of finished tasks that agents finished."""
        finished = sum(self.finished)
        return round(100 * sum(self.finished_by_agents) / finished) if finished else None

    @property
    def weeks(self) -> list[Week]:
        """Return the weeks, newest first.

        The oldest is shorter if the range is not a whole number of weeks.
        """
        ends = range(len(self.days), 0, -7)
        return [
            Week(
                self.days[end - 1],
                self.scope[end - 1],
                self.done[end - 1],
                sum(self.finished[max(0, end - 7) : end]),
            )
            for end in ends
        ]

    @property
    def known_days(self) -> int:
        return sum(1 for number in self.scope if number)


def flow(user: Person, length: int, epic: int | None = None) -> Flow:
    """Return the flow of all tasks, or of the tasks now in one epic."""
    today = timezone.localdate()
    days = [today - datetime.timedelta(days=back) for back in range(length - 1, -1, -1)]
    visible = Task.objects.visible_to(user)
    tasks = visible if epic is None else visible.live().in_epic(epic)
    begun, moves = _steps(tasks)
    creations = _creations(tasks, days[0])
    _leave_out(creations, begun, moves, days[0])
    return _flow(days, creations, sorted(begun + moves, key=lambda step: step[1]))


class _Minute(Func):
    """Cut a time to the minute. Days begin at a minute in every time zone."""

    output_field = DateTimeField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(
            compiler, connection, template="substr(%(expressions)s, 1, 16)", **extra
        )

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(
            compiler, connection, template="date_trunc('minute', %(expressions)s)", **extra
        )


def _creations(tasks: QuerySet[Task], first: datetime.date) -> Counter[Created]:
    """Count the tasks by the day of their creation and their current status."""
    begin = timezone.make_aware(datetime.datetime.combine(first, datetime.time()))
    status = Task.objects.filter(pk=OuterRef("object_id")).values("status")
    rows = (
        Change.objects.filter(kind=Kind.TASK, version=1, object_id__in=tasks.values("pk"))
        .annotate(
            status=Subquery(status[:1]),
            minute=Case(When(created_at__gte=begin, then=_Minute("created_at"))),
            by_agent=Case(When(agent="", then=False), default=True),
        )
        .values_list("minute", "status", "by_agent")
        .annotate(count=Count("pk"))
        .order_by()
    )
    counted: Counter[Created] = Counter()
    for minute, number, by_agent, count in rows:
        day = timezone.localdate(minute) if minute else None
        counted[day, Status(number).label, by_agent] += count
    return counted


def _steps(tasks: QuerySet[Task]) -> tuple[list[Step], list[Step]]:
    """Return the first status of the tasks whose status changed, and the later ones in order."""
    changed = Revision.objects.filter(kind=Kind.TASK, version__gt=1, delta__has_key="status")
    moves = _read(changed.filter(object_id__in=tasks.values("pk")), "delta__status__set")
    if not moves:
        return [], []
    created = Revision.objects.filter(
        kind=Kind.TASK, version=1, object_id__in=changed.values("object_id")
    )
    moved = {number for number, *_ in moves}
    return [step for step in _read(created, "snapshot__status") if step[0] in moved], moves


def _read(rows: QuerySet[Revision], status: str) -> list[Step]:
    columns = ("object_id", "change__created_at", KT(status), "change__agent")
    found = rows.order_by("change_id").values_list(*columns)
    return [(number, at, status, bool(agent)) for number, at, status, agent in found]


def _leave_out(
    creations: Counter[Created], begun: list[Step], moves: list[Step], first: datetime.date
) -> None:
    """Leave out the tasks whose status changed, which their steps describe.

    The status of the others is still that of their creation, so none of their revisions is read.
    """
    status = {number: status for number, _, status, _ in moves}
    for number, at, _, by_agent in begun:
        day = timezone.localdate(at)
        creations[day if day >= first else None, status[number], by_agent] -= 1


class _Board:
    """Follow the tasks through their statuses, day by day."""

    def __init__(self, first: datetime.date) -> None:
        self.first = first
        self.counts: Counter[str] = Counter()
        self.finished: Counter[tuple[datetime.date | None, bool]] = Counter()
        self.cycle_days: list[float] = []
        self._now: dict[int, str] = {}
        self._begun: dict[int, datetime.datetime] = {}

    def create(self, created: Created, count: int) -> None:
        day, status, by_agent = created
        self.counts[status] += count
        if status == "done":
            self.finished[day, by_agent] += count

    def take(self, step: Step, day: datetime.date) -> None:
        number, at, status, by_agent = step
        was = self._now.get(number)
        if status == "in_progress":
            self._begun.setdefault(number, at)
        if status == "done" and was not in _OVER:
            self.finished[day, by_agent] += 1
            if number in self._begun and day >= self.first:
                self.cycle_days.append((at - self._begun[number]).total_seconds() / 86400)
        if was:
            self.counts[was] -= 1
        self.counts[status] += 1
        self._now[number] = status


def _flow(days: list[datetime.date], creations: Counter[Created], steps: list[Step]) -> Flow:
    made = Flow(
        days,
        {name: [] for name in ("done", "blocked", "in_progress", "open")},
        [],
        [],
        [],
        [],
        [],
        0,
    )
    board = _Board(days[0])
    created: dict[datetime.date | None, list[Created]] = defaultdict(list)
    for creation in creations:
        created[creation[0]].append(creation)
    place = 0
    for day in days:
        for creation in (*created.pop(None, ()), *created[day]):
            board.create(creation, creations[creation])
        while place < len(steps) and (at := timezone.localdate(steps[place][1])) <= day:
            board.take(steps[place], at)
            place += 1
        _note(made, board.counts, board.finished, day)
    return replace(made, cycle_days=board.cycle_days, total=board.counts.total())


def _note(
    made: Flow,
    counts: Counter[str],
    finished: Counter[tuple[datetime.date | None, bool]],
    day: datetime.date,
) -> None:
    for name, series in made.standing.items():
        series.append(counts[name])
    made.scope.append(counts.total() - counts["cancelled"])
    made.done.append(counts["done"])
    made.finished.append(finished[day, False] + finished[day, True])
    made.finished_by_agents.append(finished[day, True])
