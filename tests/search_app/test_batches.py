"""Test that the index and the history follow a batch once, and only what it kept of it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resources_app.models import Change, Task
from resources_app.writing.batches import write_batch
from search_app.index.rebuild import index_health
from tests.factories import as_actor, make_task, task_uri
from tests.resources_app.acting import again, is_replayed
from tests.search_app.finding import found

pytestmark = pytest.mark.django_db


def entry(task: Task, field: str, **operation: Any) -> dict[str, Any]:
    return {"uri": task_uri(task, field), "operation": operation}


def append(task: Task, content: str) -> dict[str, Any]:
    return entry(task, "description", type="append", content=content)


def statements(user: User, entries: list[dict[str, Any]]) -> list[str]:
    with CaptureQueriesContext(connection) as captured:
        write_batch(as_actor(user), entries)
    return [query["sql"] for query in captured]


def count(sql: list[str], *beginnings: str) -> int:
    return sum(one.replace('"', "").startswith(beginnings) for one in sql)


def test_a_batch_writes_the_index_the_feed_and_the_history_once(alice: User) -> None:
    sql = statements(alice, [append(make_task(), f"pelican {n}") for n in range(20)])
    assert count(sql, "INSERT INTO search_app_document") == 1
    assert count(sql, "INSERT INTO resources_app_change") == 1
    assert count(sql, "INSERT INTO resources_app_revision") == 1
    assert len(found(alice, "pelican", limit=50)) == 20


def test_a_longer_batch_costs_one_more_statement_per_task(alice: User) -> None:
    tasks = [make_task() for _ in range(40)]
    statements(alice, [append(task, "warm") for task in tasks[:10]])
    few, many = (
        len(statements(alice, [append(task, "pelican") for task in tasks[:length]]))
        for length in (10, 40)
    )
    assert many - few == 30, "the update of the row, which checks its version"


def test_a_task_that_a_batch_changes_often_is_indexed_once_and_as_it_ends(alice: User) -> None:
    task = make_task(description="burrow")
    sql = statements(
        alice,
        [
            append(task, " termitarium"),
            entry(task, "status", type="set", value="blocked"),
            entry(task, "description", type="str_replace", old_str="burrow", new_str="nest"),
        ],
    )
    assert count(sql, "INSERT INTO search_app_document") == 1
    assert found(alice, "nest termitarium", status=["blocked"]) == [task.ref]
    assert found(alice, "burrow") == []
    assert index_health()["status"] == "ok"


def test_what_fails_after_a_success_on_the_same_task_is_neither_found_nor_kept(alice: User) -> None:
    task = make_task(labels=["one", "two"])
    answer = write_batch(
        as_actor(alice),
        [
            append(task, "pelican"),
            # Two labels become one, so the second element is gone after the write.
            {
                "uri": task_uri(task, "labels", 1),
                "operation": {"type": "set", "value": "one"},
            },
            entry(task, "status", type="set", value="done"),
        ],
        atomic=False,
    )
    assert [("error" in result) for result in answer["results"]] == [False, True, False]
    row = again(task)
    assert (row.labels, row.description, row.version) == (["one", "two"], "pelican", 3)
    assert found(alice, "pelican", label=["two"]) == [task.ref]
    assert is_replayed(row)
    assert list(Change.objects.filter(ref=task.ref).values_list("version", flat=True)) == [1, 2, 3]


def test_a_conflict_in_a_batch_keeps_the_record_of_what_came_before(alice: User) -> None:
    task, other = make_task(), make_task()
    stale = write_batch(as_actor(alice), [append(other, "a")])["results"][0]["etag"]
    write_batch(as_actor(alice), [append(other, "b")])
    answer = write_batch(
        as_actor(alice),
        [append(task, "pelican"), append(other, "c") | {"etag": stale}],
        atomic=False,
    )
    assert "diff" in answer["results"][1]["error"]["details"]
    assert found(alice, "pelican") == [task.ref]
    assert is_replayed(again(task)) and is_replayed(again(other))
    assert Change.objects.filter(ref=task.ref).count() == 2


def test_a_batch_restores_a_version_that_it_wrote_itself(alice: User) -> None:
    task = make_task()
    write_batch(
        as_actor(alice),
        [
            append(task, "pelican"),
            append(task, " heron"),
            entry(task, "description", type="restore", version=2),
        ],
    )
    row = again(task)
    assert (row.description, row.version) == ("pelican", 4)
    assert (found(alice, "pelican"), found(alice, "heron")) == ([task.ref], [])
    assert is_replayed(row)
