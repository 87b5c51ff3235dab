"""Test revisions: any version can be read at a bounded cost, and storage grows with the edits."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from resources_app.errors import NotFound
from resources_app.history.documents import document_of
from resources_app.history.revisions import MAX_DELTAS, apply_delta, document_at, make_delta
from resources_app.models import Revision, Task
from resources_app.writing.batches import MAX_OPERATIONS, write_batch
from tests.factories import as_actor, make_task, task_uri
from tests.resources_app.acting import again, is_replayed, write

TEXT = st.text(alphabet="ab\n👍\u0301", max_size=12)
LISTS = st.lists(st.text(max_size=2), max_size=3)
DOCUMENTS = st.fixed_dictionaries(
    {
        "title": TEXT,
        "description": TEXT,
        "labels": LISTS,
        "status": st.sampled_from(["open", "done"]),
        "assignee": st.none() | st.just("bob"),
    }
)


@given(DOCUMENTS, DOCUMENTS)
def test_a_delta_leads_from_one_document_to_the_other(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    delta = make_delta(old, new, {}, "task")
    stored = json.loads(json.dumps(delta))
    assert apply_delta(old, stored) == new
    assert set(delta) == {name for name in new if old[name] != new[name]}


def appends(task: Task, count: int, content: str = "one more line\n") -> list[dict[str, Any]]:
    return [
        {"uri": task_uri(task, "description"), "operation": {"type": "append", "content": content}}
    ] * count


def append_many(user: User, task: Task, count: int, content: str = "one more line\n") -> None:
    for start in range(0, count, MAX_OPERATIONS):
        write_batch(as_actor(user), appends(task, min(MAX_OPERATIONS, count - start), content))


def snapshots(task: Task) -> list[int]:
    rows = Revision.objects.filter(kind="task", object_id=task.pk, snapshot__isnull=False)
    return list(rows.order_by("version").values_list("version", flat=True))


@pytest.mark.django_db
def test_any_version_reads_back_as_it_was(alice: User) -> None:
    task = make_task(description="start\n")
    documents = [document_of(again(task))]
    for operation in (
        {"type": "merge", "value": {"title": "Other", "labels": ["x", "y"]}},
        {"type": "set", "field": "description", "value": "other start\n"},
        {
            "type": "merge",
            "value": {"assignee": "alice", "due_date": "2027-01-01", "evidence": ["seen"]},
        },
        {"type": "restore", "version": 2},
        {"type": "delete_field", "field": "labels"},
    ):
        write(alice, task, **operation)
        documents.append(document_of(again(task)))
    assert [document_at("task", task.pk, version) for version in range(1, 7)] == documents


@pytest.mark.django_db
@pytest.mark.parametrize("version", [0, -1, 3, 2**31, 2**63, 10**30])
def test_a_version_that_never_was_is_not_found(alice: User, version: int) -> None:
    task = make_task()
    write(alice, task, "title", type="set", value="Second")
    with pytest.raises(NotFound):
        document_at("task", task.pk, version)


@pytest.mark.django_db
def test_histories_of_things_with_the_same_number_are_apart(alice: User) -> None:
    task = make_task(title="The task")
    with pytest.raises(NotFound):
        document_at("epic", task.pk, 1)


@pytest.mark.django_db
def test_a_version_is_never_further_from_a_snapshot_than_the_limit(alice: User) -> None:
    task = make_task(description="a line of text\n" * 2_000)
    count = 2 * MAX_DELTAS + 50
    append_many(alice, task, count, "x\n")
    kept = snapshots(task)
    assert len(kept) == 3
    distances = [min(v - start for start in kept if start <= v) for v in range(1, count + 2)]
    assert max(distances) == MAX_DELTAS
    assert is_replayed(task)
    for version in (1, 2, kept[1] - 1, kept[1], kept[1] + 1, count):
        expected = "a line of text\n" * 2_000 + "x\n" * (version - 1)
        assert document_at("task", task.pk, version)["description"] == expected


@pytest.mark.django_db
def test_reading_a_version_back_takes_three_queries_at_most(alice: User) -> None:
    task = make_task(description="long enough " * 1_000)
    append_many(alice, task, 30)
    with CaptureQueriesContext(connection) as queries:
        document_at("task", task.pk, 29)
    assert len(queries) <= 3


def stored_size(task: Task) -> int:
    rows = Revision.objects.filter(kind="task", object_id=task.pk, version__gt=1)
    return sum(len(json.dumps(row.delta)) + len(json.dumps(row.snapshot)) for row in rows)


@pytest.mark.django_db
def test_history_of_a_megabyte_costs_what_its_edits_cost(alice: User) -> None:
    short, long = (
        make_task(description="a" * 10_000),
        make_task(description="a line of text\n" * 66_667),
    )
    for task in (short, long):
        append_many(alice, task, 10)
        write(alice, task, "description", type="prepend", content="zero\n")
        write(alice, task, "description", type="set", value=again(task).description[:-5])
    assert snapshots(long) == [1]
    assert stored_size(long) <= stored_size(short) + 100
    assert is_replayed(long)


@pytest.mark.django_db
def test_history_of_many_rewrites_is_at_most_a_few_times_what_was_written(alice: User) -> None:
    task = make_task()
    texts = [letter * 6_000 for letter in "abcdefghij"]
    for text in texts:
        write(alice, task, "description", type="set", value=text)
    assert stored_size(task) < 3 * sum(map(len, texts))


@pytest.mark.django_db
def test_a_long_list_does_not_make_every_write_a_snapshot(alice: User) -> None:
    task = make_task(evidence=["x" * 900] * 20)
    for number in range(8):
        write(alice, task, "status", type="set", value="open" if number % 2 else "done")
        write(alice, task, "evidence", number, type="set", value="changed")
    assert len(snapshots(task)) < 10
    assert is_replayed(task)


@pytest.mark.django_db
def test_a_snapshot_starts_the_count_again(alice: User) -> None:
    task = make_task(description="x" * 10_000)
    write(alice, task, "description", type="append", content="y" * 6_000)
    assert (snapshots(task), again(task).delta_weight > 6_000) == ([1], True)
    write(alice, task, "description", type="set", value="z" * 5_000)
    assert snapshots(task) == [1, 3]
    assert (again(task).snapshot_version, again(task).delta_weight) == (3, 0)
