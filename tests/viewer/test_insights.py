"""Test the flow of work: what it counts, and what it reads for that."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backlog_site.viewer.queries.insights import flow
from resources_app.identity.roles import Actor
from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.factories import make_task, make_user, task_uri

pytestmark = pytest.mark.django_db


def at(days: int, agent: str = "") -> Actor:
    return Actor(
        make_user("carol", "admin"), "mcp", agent, at=timezone.now() - timedelta(days=days)
    )


def move(task: Task, status: str, days: int, agent: str = "") -> None:
    write_path.write(at(days, agent), task_uri(task, "status"), {"type": "set", "value": status})


def test_tasks_count_from_their_creation_and_move_with_their_status(bob: User) -> None:
    make_task(actor=at(50), status="blocked")
    make_task(actor=at(10), status="done")
    make_task(actor=at(5, "claude"), status="done")
    make_task(actor=at(5), status="cancelled")
    moved = make_task(actor=at(40))
    move(moved, "in_progress", 8)
    move(moved, "done", 6, "claude")
    move(moved, "open", 2)
    found = flow(bob, 30)
    on = {(timezone.localdate() - day).days: place for place, day in enumerate(found.days)}

    def standing(days: int) -> tuple[int, ...]:
        return tuple(
            found.standing[name][on[days]] for name in ("open", "in_progress", "blocked", "done")
        )

    assert standing(29) == (1, 0, 1, 0)
    assert standing(8) == (0, 1, 1, 1)
    assert standing(6) == (0, 0, 1, 2)
    assert standing(5) == (0, 0, 1, 3)
    assert standing(0) == (1, 0, 1, 2)
    assert (found.scope[-1], found.total) == (4, 5)
    assert {days: found.finished[on[days]] for days in (10, 6, 5)} == {10: 1, 6: 1, 5: 1}
    assert sum(found.finished_by_agents) == 2
    assert found.cycle_days == [pytest.approx(2, abs=0.1)]


def test_a_status_that_was_written_with_an_earlier_time_leaves_the_counts_whole(bob: User) -> None:
    task = make_task(actor=at(3))
    move(task, "done", 1)
    move(task, "open", 2)
    found = flow(bob, 30)
    assert found.total == 1
    assert min(min(series) for series in found.standing.values()) == 0


def test_hidden_tasks_are_not_counted(bob: User) -> None:
    task = make_task(groups=["admin"])
    move(task, "done", 0)
    assert flow(bob, 30).total == 0


def test_tasks_whose_status_never_changed_cost_no_row_and_no_snapshot(bob: User) -> None:
    for _ in range(5):
        make_task(description="long")
    Change.objects.update(created_at=timezone.now() - timedelta(days=100))
    with CaptureQueriesContext(connection) as captured:
        assert flow(bob, 30).total == 5
    assert "snapshot" not in "".join(query["sql"] for query in captured)
