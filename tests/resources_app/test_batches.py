"""Test batches: atomic or independent; later operations see earlier ones; a dry run changes
nothing.
"""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resources_app.errors import (
    Conflict,
    InvalidUri,
    NotFound,
    OperationFailed,
    PermissionDenied,
    ValidationFailed,
)
from resources_app.history.documents import uri_of
from resources_app.models import Change, Task
from resources_app.writing.batches import MAX_OPERATIONS, write_batch
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.resources_app.acting import again, everything, is_replayed

pytestmark = pytest.mark.django_db


def entry(task: Task, *rest: object, etag: str | None = None, **operation: Any) -> dict[str, Any]:
    made = {"uri": task_uri(task, *rest), "operation": operation}
    return made if etag is None else {**made, "etag": etag}


def append(task: Task, content: str) -> dict[str, Any]:
    return entry(task, "description", type="append", content=content)


def test_the_batch_of_the_adr(alice: User) -> None:
    task = make_task()
    answer = write_batch(
        as_actor(alice),
        [
            append(task, "\n## New Section\n..."),
            entry(task, "status", type="set", value="in_progress"),
            entry(task, "evidence", type="array_append", value="Updated description"),
        ],
        atomic=True,
    )
    row = again(task)
    assert (row.description, row.evidence, row.version) == (
        "\n## New Section\n...",
        ["Updated description"],
        4,
    )
    assert [result["version"] for result in answer["results"]] == [2, 3, 4]
    assert [result["uri"].rpartition("/")[2] for result in answer["results"]] == [
        "description",
        "status",
        "evidence",
    ]
    assert (answer["atomic"], answer["dry_run"], answer["failed"]) == (True, False, 0)
    assert is_replayed(task)


def test_the_changes_of_a_batch_carry_its_id(alice: User) -> None:
    task = make_task()
    answer = write_batch(as_actor(alice), [append(task, "a"), append(task, "b")])
    batches = Change.objects.filter(version__gt=1).values_list("batch", flat=True)
    assert set(batches) == {uuid.UUID(answer["batch"])}


@pytest.mark.parametrize("atomic", [True, False])
def test_later_operations_see_earlier_ones(alice: User, atomic: bool) -> None:
    task = make_task(description="a")
    answer = write_batch(
        as_actor(alice),
        [
            append(task, "b"),
            entry(task, "description", type="str_replace", old_str="ab", new_str="c"),
            entry(task, "labels", type="array_append", value="x"),
            entry(task, "labels", 0, type="append", content="y"),
        ],
        atomic=atomic,
    )
    assert answer["failed"] == 0
    assert (again(task).description, again(task).labels) == ("c", ["xy"])
    assert is_replayed(task)


def test_an_etag_inside_a_batch_is_checked_against_what_the_batch_has_done(alice: User) -> None:
    task = make_task()
    etag = write_batch(as_actor(alice), [append(task, "a")])["results"][0]["etag"]
    with pytest.raises(Conflict) as caught:
        write_batch(as_actor(alice), [append(task, "b"), {**append(task, "c"), "etag": etag}])
    assert caught.value.details["operation_index"] == 1
    assert again(task).description == "a"


def test_an_atomic_batch_with_one_failure_leaves_nothing(alice: User) -> None:
    one, two = make_task(description="1"), make_task(description="2")
    before = everything()
    with pytest.raises(OperationFailed) as caught:
        write_batch(
            as_actor(alice),
            [
                append(one, "!"),
                append(two, "!"),
                entry(two, "description", type="delete", content="absent"),
            ],
        )
    assert caught.value.details["operation_index"] == 2
    assert everything() == before


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"uri": "nonsense", "operation": {"type": "set", "value": "x"}}, InvalidUri),
        (
            {
                "uri": "mcp://backlog/tasks/TASK-0404/title",
                "operation": {"type": "set", "value": "x"},
            },
            NotFound,
        ),
        ({"uri": None, "operation": None}, InvalidUri),
        ({"uri": "mcp://backlog/tasks/TASK-0001", "operation": None}, ValidationFailed),
        (
            {
                "uri": "mcp://backlog/tasks/TASK-0001/title",
                "operation": {"type": "set", "value": ""},
            },
            ValidationFailed,
        ),
        (
            {"uri": "mcp://backlog/tasks/TASK-0001/id", "operation": {"type": "set", "value": ""}},
            PermissionDenied,
        ),
        (
            {
                "uri": "mcp://backlog/tasks/TASK-0001/title",
                "operation": {"type": "set", "value": "x"},
                "etag": 5,
            },
            ValidationFailed,
        ),
    ],
)
def test_a_bad_entry_fails_the_atomic_batch_and_only_itself_otherwise(
    alice: User, bad: dict[str, Any], error: type[Exception]
) -> None:
    task = make_task()
    before = everything()
    with pytest.raises(error):
        write_batch(as_actor(alice), [append(task, "a"), bad])
    assert everything() == before
    answer = write_batch(as_actor(alice), [append(task, "a"), bad, append(task, "b")], atomic=False)
    assert (again(task).description, answer["failed"]) == ("ab", 1)
    refused = answer["results"][1]
    assert refused["uri"] == bad["uri"]
    assert refused["error"]["code"] == error.code  # type: ignore[attr-defined]
    assert refused["error"]["details"]["operation_index"] == 1
    assert is_replayed(task)


def test_a_best_effort_operation_that_fails_after_its_update_leaves_memory_and_database_in_step(
    alice: User,
) -> None:
    task, other = make_task(), make_task()
    answer = write_batch(
        as_actor(alice),
        [
            entry(task, "title", type="set", value="Kept"),
            entry(other, "title", type="set", value="Kept too"),
            entry(
                task,
                type="merge",
                value={"title": "Lost", "labels": ["lost"], "depends_on": ["TASK-0404"]},
            ),
            entry(task, type="merge", value={"description": "Lost", "depends_on": [task.ref]}),
            entry(task, "title", type="append", content="!"),
            entry(task, "labels", type="array_append", value="kept"),
            entry(other, "title", type="append", content="!"),
        ],
        atomic=False,
    )
    assert ["error" in result for result in answer["results"]] == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
    ]
    assert (again(task).title, again(task).labels, again(task).description) == (
        "Kept!",
        ["kept"],
        "",
    )
    assert again(other).title == "Kept too!"
    assert [again(task).version, again(other).version] == [4, 3]
    assert list(Task.objects.get(pk=task.pk).label_rows.values_list("name", flat=True)) == ["kept"]
    assert is_replayed(task)
    assert is_replayed(other)


@pytest.mark.parametrize("atomic", [True, False])
def test_a_rehearsal_answers_every_diff_and_changes_nothing(alice: User, atomic: bool) -> None:
    task = make_task(description="a\n")
    before = everything()
    answer = write_batch(
        as_actor(alice), [append(task, "b\n"), append(task, "c\n")], atomic=atomic, dry_run=True
    )
    assert everything() == before
    assert (answer["batch"], answer["dry_run"]) == (None, True)
    assert ["+b" in answer["results"][0]["diff"], "+c" in answer["results"][1]["diff"]] == [
        True,
        True,
    ]
    assert [result["version"] for result in answer["results"]] == [2, 3]


def test_a_rehearsal_of_an_atomic_batch_fails_as_the_batch_would(alice: User) -> None:
    task = make_task()
    with pytest.raises(OperationFailed):
        write_batch(
            as_actor(alice), [entry(task, "description", type="delete", content="x")], dry_run=True
        )


def test_a_batch_takes_500_operations_and_no_more(alice: User) -> None:
    task = make_task()
    answer = write_batch(
        as_actor(alice), [append(task, f"{number},") for number in range(MAX_OPERATIONS)]
    )
    assert MAX_OPERATIONS == len(answer["results"]) == 500
    assert again(task).description == "".join(f"{number}," for number in range(500))
    assert is_replayed(task)
    with pytest.raises(ValidationFailed) as caught:
        write_batch(as_actor(alice), [append(task, "x")] * (MAX_OPERATIONS + 1))
    assert caught.value.details == {"field": "operations", "max_entries": 500}


@pytest.mark.parametrize("operations", [[], None, {}, "x", 3])
def test_a_batch_is_a_list_with_something_in_it(alice: User, operations: Any) -> None:
    with pytest.raises(ValidationFailed) as caught:
        write_batch(as_actor(alice), operations)
    assert caught.value.details["field"] == "operations"


@pytest.mark.parametrize(
    "bad", [None, "x", {}, {"uri": "x"}, {"operation": {}}, {"uri": "x", "operation": {}, "id": 1}]
)
def test_an_entry_of_another_shape_is_refused_with_its_index(alice: User, bad: Any) -> None:
    task = make_task()
    with pytest.raises(ValidationFailed) as caught:
        write_batch(as_actor(alice), [append(task, "a"), bad], atomic=False)
    assert caught.value.details["field"] == "operations[1]"
    assert again(task).version == 1


def test_readers_write_no_batch(bob: User, mallory: User) -> None:
    task = make_task()
    for user in (bob, mallory):
        for atomic in (True, False):
            with pytest.raises(PermissionDenied):
                write_batch(as_actor(user), [append(task, "a")], atomic=atomic)


def test_an_invisible_thing_in_a_batch_is_not_there(alice: User) -> None:
    seen, hidden = make_task(), make_task(groups=["admin"])
    with pytest.raises(NotFound):
        write_batch(as_actor(alice), [append(seen, "a"), append(hidden, "a")])
    answer = write_batch(as_actor(alice), [append(seen, "a"), append(hidden, "a")], atomic=False)
    assert answer["results"][1]["error"]["code"] == "not_found"
    assert (again(seen).description, again(hidden).description) == ("a", "")


def test_a_batch_may_move_a_task_and_touch_both_epics(alice: User) -> None:
    old, new = make_epic(), make_epic()
    task = make_task(epic_id=old.ref)
    write_batch(
        as_actor(alice),
        [
            {
                "uri": uri_of(old) + "/description",
                "operation": {"type": "append", "content": "gave"},
            },
            entry(task, "parent_id", type="set", value=new.ref),
            {
                "uri": uri_of(new) + "/description",
                "operation": {"type": "append", "content": "took"},
            },
        ],
    )
    assert (again(task).epic, again(old).description, again(new).description) == (
        new,
        "gave",
        "took",
    )


def test_each_row_is_locked_and_fetched_once_for_the_whole_batch(alice: User) -> None:
    task = make_task()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        write_batch(as_actor(alice), [append(task, "a")] * 20)
    statements = [query["sql"] for query in queries if 'FROM "resources_app_task"' in query["sql"]]
    locks = [statement for statement in statements if "FOR NO KEY UPDATE" in statement]
    # PostgreSQL locks the row in a separate statement; on SQLite the transaction is the lock.
    assert (len(locks), len(statements) - len(locks)) == (int(connection.vendor == "postgresql"), 1)
