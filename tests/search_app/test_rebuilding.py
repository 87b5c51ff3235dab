"""Test rebuilds: beside the live index, swapped at once, continued after a kill; repaired by the
sweep.
"""

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from resources_app.jobs import queue
from resources_app.models import Comment, Job, Task
from resources_app.writing import write_path
from search_app.index import rebuild
from search_app.index.rebuild import heal, index_health, reindex, sweep
from search_app.index.write import current_state
from search_app.models import Document, IndexState
from tests.factories import as_actor, make_epic, make_task
from tests.other_processes import run, shared_environment, start
from tests.search_app.finding import found


def texts(slot: str) -> int:
    with connection.cursor() as cursor:
        in_rows = f"search_app_document WHERE terms IS NOT NULL AND slot = '{slot}'"
        cursor.execute(
            "SELECT count(*) FROM"
            f" {in_rows if connection.vendor == 'postgresql' else f'search_text_{slot}'}"
        )
        return int(cursor.fetchone()[0])


def test_a_rebuild_finds_the_same_in_the_other_slot(bob: User) -> None:
    refs = {make_task(title=f"Needle {n}").ref for n in range(5)} | {make_epic(title="Needle").ref}
    before = current_state().live
    steps: list[tuple[int, int]] = []
    assert reindex(lambda done, total, _: steps.append((done, total))) == 6
    assert current_state().live != before and set(found(bob, "needle")) == refs
    assert steps[-1] == (6, 6)


def test_what_came_past_the_write_path_is_found_after_a_rebuild(
    bob: User, capsys: pytest.CaptureFixture[str]
) -> None:
    now = timezone.now()
    Task.objects.bulk_create([Task(number=7, title="Smuggled", created_at=now, updated_at=now)])
    assert found(bob, "smuggled") == []
    call_command("reindex")
    assert found(bob, "smuggled") == ["TASK-0007"]
    assert "1 documents indexed" in capsys.readouterr().out


def test_while_a_rebuild_runs_the_live_index_answers_and_both_follow_writes(
    bob: User, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "CHUNK", 2)
    tasks = [make_task(title=f"Needle {n}") for n in range(5)]

    def meddle(done: int, total: int, note: str) -> None:
        assert len(found(bob, "needle")) + len(found(bob, "thread")) == 5
        if done == 2:
            for task in (tasks[0], tasks[4]):
                address = f"mcp://backlog/tasks/{task.ref}/title"
                write_path.write(as_actor(alice), address, {"type": "set", "value": "Thread"})

    reindex(meddle)
    assert found(bob, "needle") == [task.ref for task in tasks[1:4]]
    assert found(bob, "thread") == [tasks[0].ref, tasks[4].ref]
    assert index_health()["status"] == "ok"


def test_the_old_slot_is_emptied_by_a_later_sweep(bob: User) -> None:
    make_task(title="Needle")
    old = current_state().live
    reindex()
    sweep()
    assert texts(old) == 1
    IndexState.objects.update(swapped_at=timezone.now() - timedelta(hours=1))
    sweep()
    assert texts(old) == 0 and not Document.objects.filter(slot=old).exists()
    assert len(found(bob, "needle")) == 1


def test_the_sweep_heals_what_is_missing_stale_or_left_over(bob: User) -> None:
    missing, stale, gone = (
        make_task(title=f"Needle {name}") for name in ("missing", "stale", "gone")
    )
    commented = make_task(title="Needle commented")
    Document.objects.filter(object_id=missing.pk).delete()
    Task.objects.filter(pk=stale.pk).update(title="Thread", version=2)
    Task.objects.filter(pk=gone.pk).delete()
    now = timezone.now()
    Comment.objects.bulk_create(
        [Comment(task=commented, body="kraken", created_at=now, updated_at=now)]
    )
    health = index_health()
    assert (
        health["status"] == "stale"
        and health["missing_or_stale"]["task"] == 3
        and health["leftover"] == 1
    )
    assert "reindex" in health["suggestion"]
    assert sweep() == 4
    assert found(bob, "needle") == [missing.ref, commented.ref]
    assert found(bob, "thread") == [stale.ref] and found(bob, "kraken") == [commented.ref]
    assert index_health()["status"] == "ok" and heal(current_state().live) == 0


def test_an_outdated_schema_is_reported_and_rebuilt_by_the_sweep(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(title="Needle")
    monkeypatch.setattr(rebuild, "SCHEMA", 2)
    assert index_health()["status"] == "stale"
    queue.enqueue("sweep_index", {}, key="sweep_index")
    while running := queue.claim_next():
        queue.run(running)
    assert list(Job.objects.order_by("pk").values_list("kind", "state")) == [
        ("sweep_index", "done"),
        ("reindex", "done"),
    ]
    assert index_health()["status"] == "ok" and len(found(bob, "needle")) == 1


def test_a_rebuild_of_an_older_schema_starts_over(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_task(title="Needle")
    rebuild._start()
    rebuild._step(current_state())
    monkeypatch.setattr(rebuild, "SCHEMA", 2)
    assert reindex() == 1
    assert current_state().live_schema == 2 and found(bob, "needle") == ["TASK-0001"]


HANG = """
import threading
from search_app.index import rebuild as rebuilding
rebuilding.CHUNK = 2
def stop(done, total, note):
    if done >= 4:
        print("half way", flush=True)
        threading.Event().wait()
rebuilding.reindex(stop)
"""
SEARCH = """
from django.contrib.auth.models import User
from search_app.index.write import current_state
from search_app.search import search_unified
state = current_state()
found = search_unified(User.objects.get(username="bob"), "needle")["total"]
print(found, state.building, state.position.get("done"))
"""
FINISH = """
from search_app.index import rebuild as rebuilding
print(rebuilding.reindex(), rebuilding.index_health()["status"])
"""


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_killed_rebuild_leaves_search_working_and_the_next_run_finishes_it(
    tmp_path: Path, bob: User
) -> None:
    for n in range(7):
        make_task(title=f"Needle {n}")
    environment = shared_environment(tmp_path)
    worker = start(environment, HANG)
    assert worker.stdout and worker.stdout.readline() == "half way\n"
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    found_, building, done = run(environment, SEARCH).split()
    assert found_ == "7" and building in {"a", "b"} and int(done) == 4
    assert run(environment, FINISH) == "3 ok"
    assert run(environment, SEARCH).split()[0] == "7"
