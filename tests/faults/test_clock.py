"""Test a clock that is set back, set forward, or stopped: it decides nothing that a number can
decide.
"""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from backlog_site.beat import Scheduler
from backlog_site.celery import app
from resources_app import tasks
from resources_app.errors import Conflict
from resources_app.history import revisions
from resources_app.history.documents import document_of
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.sync import runs
from resources_app.jobs import queue
from resources_app.models import IBConnection, Job
from resources_app.reading.by_address import read
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, task_uri

HOUR = timedelta(hours=1)
MOVES = {"back": -HOUR, "forward": HOUR, "frozen": None}

Move = Callable[[timedelta | None], None]


@pytest.fixture
def move_clock(monkeypatch: pytest.MonkeyPatch) -> Move:
    """Move this machine's clock; None stops it."""
    real = timezone.now

    def move(by: timedelta | None) -> None:
        stopped = real()
        monkeypatch.setattr(timezone, "now", lambda: stopped if by is None else real() + by)

    return move


def contents(user: User, uri: str) -> Any:
    return read(as_actor(user), uri).contents


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.parametrize("move", MOVES)
def test_etags_versions_and_the_feed_follow_the_writes_and_not_the_clock(
    alice: User, move_clock: Move, move: str
) -> None:
    task = make_task(description="0\n")
    uri = task_uri(task, "description")
    cursor = contents(alice, "mcp://backlog/changes")["next_cursor"]
    move_clock(MOVES[move])
    etags = [read(as_actor(alice), uri).etag]
    for number in range(1, 4):
        line = {"type": "append", "content": f"{number}\n"}
        etags.append(write_path.write(as_actor(alice), uri, line, etags[-1])["etag"])
        with pytest.raises(Conflict):
            write_path.write(as_actor(alice), uri, line, etags[-2])
    assert len(set(etags)) == 4
    feed = contents(alice, f"mcp://backlog/changes?since={cursor}")["results"]
    assert [change["version"] for change in feed] == [2, 3, 4]
    versions = contents(alice, f"{uri}/versions")["results"]
    assert [version["version"] for version in versions] == [4, 3, 2, 1]
    task.refresh_from_db()
    assert task.description == "0\n1\n2\n3\n"
    assert revisions.document_at("task", task.pk, 4) == document_of(task)


def set_clock_back() -> None:
    """Move all stored times forward, which equals setting the clock back."""
    Job.objects.update(
        created_at=F("created_at") + HOUR,
        run_at=F("run_at") + HOUR,
        lease_until=F("lease_until") + HOUR,
    )
    IBConnection.objects.update(lease_until=F("lease_until") + HOUR)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch, db: None) -> list[Any]:
    """Return the payloads of the jobs that ran."""
    given: list[Any] = []
    monkeypatch.setitem(
        queue._functions, "note", lambda running: given.append(running.payload.get("n"))
    )
    return given


def test_what_waits_and_what_a_dead_worker_left_is_done_though_the_clock_was_set_back(
    done: list[Any],
) -> None:
    queue.enqueue("note", {"n": "left"})
    assert queue.claim_next()
    queue.enqueue("note", {"n": "waiting"})
    queue.enqueue("note", {"n": "later"}, run_at=timezone.now() + HOUR)
    set_clock_back()
    queue.sweep()
    assert sorted(done) == ["left", "waiting"]


def test_a_running_job_is_left_alone_by_who_has_another_time(
    done: list[Any], move_clock: Move
) -> None:
    running = queue.claim(queue.enqueue("note", {}).pk)
    assert running
    for minutes in (-1, 0, 1):
        set_to = timedelta(minutes=minutes) * 0.9
        move_clock(set_to)
        assert queue.claim_next() is None
    running.heartbeat()


def test_the_schedule_goes_on_though_the_clock_was_set_back(done: list[Any]) -> None:
    tasks.enqueue_scheduled("note")
    queue.sweep()
    set_clock_back()
    tasks.enqueue_scheduled("note")
    queue.sweep()
    assert len(done) == 2


def test_a_tenant_is_free_again_though_the_clock_was_set_back(db: None) -> None:
    connection = connections.create(
        "BnK4JV", "Demo", "https://demo.intelligencebank.com", email="e", password="p"
    )
    run = runs.start(connection, "full")
    with runs.lease(run):
        with pytest.raises(runs.Busy), runs.lease(run):
            pass
        set_clock_back()
        with runs.lease(run):
            pass


def test_the_scheduler_sends_on_though_the_clock_was_set_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = app.now
    scheduler = Scheduler(app, schedule_filename=str(tmp_path / "schedule"))

    def sent_at(seconds: float) -> int:
        monkeypatch.setattr(app, "now", lambda: real() + timedelta(seconds=seconds))
        with redis.Redis.from_url(settings.REDIS_URL) as broker:
            broker.delete("celery")
            while scheduler.tick() == 0:
                pass
            return int(broker.llen("celery"))

    sent_at(0)
    assert sent_at(6) >= 2
    assert sent_at(-3600) == 0
    assert sent_at(-3594) >= 2
    scheduler.close()
