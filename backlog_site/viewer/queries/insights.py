"""Compute the flow of work: the number of tasks per status on each day, from the history of
statuses.
"""

import datetime
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from resources_app.identity.roles import Person
from resources_app.models import Revision, Task
from resources_app.vocabulary import Kind

RANGES = (30, 60, 90)
_OVER = {"done", "cancelled"}

Step = tuple[int, datetime.datetime, str, bool]


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
    return _flow(days, list(_steps(visible if epic is None else visible.live().in_epic(epic))))


def _steps(tasks: QuerySet[Task]) -> Iterator[Step]:
    """Yield every status change of the tasks, oldest first: task, time, status, and whether an
    agent made it.
    """
    of_these = Q(kind=Kind.TASK, object_id__in=tasks.values("pk"))
    rows = Revision.objects.filter(of_these, Q(version=1) | Q(delta__has_key="status"))
    wanted = ("object_id", "change__created_at", "version", "delta", "snapshot", "change__agent")
    for number, at, version, delta, snapshot, agent in (
        rows.order_by("change_id").values_list(*wanted).iterator(2000)
    ):
        status = _status(version, delta, snapshot)
        if status:
            yield number, at, status, bool(agent)


def _status(version: int, delta: dict[str, Any], snapshot: dict[str, Any] | None) -> str:
    if version == 1:
        return str((snapshot or {}).get("status", ""))
    return str(delta["status"].get("set", ""))


def _flow(days: list[datetime.date], steps: Iterable[Step]) -> Flow:
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
    now: dict[int, str] = {}
    begun: dict[int, datetime.datetime] = {}
    finished: Counter[tuple[datetime.date, bool]] = Counter()
    waiting = sorted(steps, key=lambda step: step[1])
    place = 0
    for day in days:
        while place < len(waiting) and timezone.localdate(waiting[place][1]) <= day:
            is_in_range = timezone.localdate(waiting[place][1]) >= days[0]
            _take(waiting[place], now, begun, finished, made.cycle_days if is_in_range else [])
            place += 1
        _note(made, Counter(now.values()), finished, day)
    return Flow(**{**made.__dict__, "total": len(now)})


def _take(
    step: Step,
    now: dict[int, str],
    begun: dict[int, datetime.datetime],
    finished: Counter[tuple[datetime.date, bool]],
    cycles: list[float],
) -> None:
    number, at, status, by_agent = step
    if status == "in_progress":
        begun.setdefault(number, at)
    if status == "done" and now.get(number) not in _OVER:
        finished[timezone.localdate(at), by_agent] += 1
        if number in begun:
            cycles.append((at - begun[number]).total_seconds() / 86400)
    now[number] = status


def _note(
    made: Flow,
    counts: Counter[str],
    finished: Counter[tuple[datetime.date, bool]],
    day: datetime.date,
) -> None:
    for name, series in made.standing.items():
        series.append(counts[name])
    made.scope.append(counts.total() - counts["cancelled"])
    made.done.append(counts["done"])
    made.finished.append(finished[day, False] + finished[day, True])
    made.finished_by_agents.append(finished[day, True])
