"""Test writing to addresses: only what is requested changes, and the answer says exactly what
happened.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.errors import (
    BacklogError,
    InvalidOperation,
    InvalidUri,
    NotFound,
    OperationFailed,
    ValidationFailed,
)
from resources_app.fields.declarations import MAX_TEXT
from resources_app.history.documents import document_of, uri_of
from resources_app.models import Change, Revision, Task
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.resources_app.acting import address, again, everything, is_replayed, write

pytestmark = pytest.mark.django_db


def test_the_answer_has_the_parts_of_the_contract(alice: User) -> None:
    task = make_task(description="one\ntwo é\n")
    answer = write(alice, task, "description", type="str_replace", old_str="two", new_str="2")
    assert set(answer) == {"uri", "etag", "version", "mime_type", "size", "diff"}
    assert answer["uri"] == task_uri(task, "description")
    assert (answer["version"], answer["mime_type"]) == (2, "text/markdown")
    assert answer["size"] == len("one\n2 é\n".encode())
    assert answer["diff"].split("\n")[2:] == ["@@ -1,2 +1,2 @@", " one", "-two é", "+2 é"]


def test_a_value_shows_before_and_after(alice: User) -> None:
    task = make_task()
    assert write(alice, task, "status", type="set", value="done")["diff"] == {
        "before": "open",
        "after": "done",
    }


def test_a_write_to_the_whole_shows_each_field_that_changed(alice: User) -> None:
    task = make_task(title="Old", description="same")
    answer = write(
        alice, task, type="merge", value={"title": "New", "description": "same", "labels": ["x"]}
    )
    assert set(answer["diff"]) == {"title", "labels"}
    assert answer["diff"]["labels"] == {"before": [], "after": ["x"]}
    assert "-Old" in answer["diff"]["title"]
    assert answer["mime_type"] == "application/json"


@pytest.mark.parametrize(
    ("rest", "operation", "field", "value"),
    [
        (
            ["description"],
            {"type": "str_replace", "old_str": "two", "new_str": "$1"},
            "description",
            "one\n$1\n",
        ),
        (
            ["description"],
            {"type": "insert", "line": 1, "content": "1½"},
            "description",
            "one\n1½\ntwo\n",
        ),
        (["description"], {"type": "append", "content": "three"}, "description", "one\ntwo\nthree"),
        (
            ["description"],
            {"type": "prepend", "content": "zero\n"},
            "description",
            "zero\none\ntwo\n",
        ),
        (["description"], {"type": "delete", "content": "one\n"}, "description", "two\n"),
        (["description"], {"type": "set", "value": ""}, "description", ""),
        (["title"], {"type": "append", "content": "!"}, "title", "A task!"),
        (["status"], {"type": "set", "value": "done"}, "status", "done"),
        (["assignee"], {"type": "set", "value": "alice"}, "assignee", "alice"),
        (["due_date"], {"type": "set", "value": "2027-01-01"}, "due_date", "2027-01-01"),
        (["evidence"], {"type": "array_append", "value": "c"}, "evidence", ["a", "b", "c"]),
        (["evidence"], {"type": "array_prepend", "value": "c"}, "evidence", ["c", "a", "b"]),
        (
            ["evidence"],
            {"type": "array_insert", "index": 1, "value": "c"},
            "evidence",
            ["a", "c", "b"],
        ),
        (["evidence"], {"type": "array_remove", "index": 0}, "evidence", ["b"]),
        (["evidence"], {"type": "array_remove", "value": "b"}, "evidence", ["a"]),
        (["evidence"], {"type": "set", "value": []}, "evidence", []),
        (["evidence", 1], {"type": "set", "value": "B"}, "evidence", ["a", "B"]),
        (["evidence", 1], {"type": "append", "content": " \n"}, "evidence", ["a", "b \n"]),
        (
            ["references", 0],
            {"type": "merge", "value": {"title": "t"}},
            "references",
            [{"url": "u", "title": "t"}],
        ),
        (
            ["references", 0],
            {"type": "set", "field": "url", "value": "v"},
            "references",
            [{"url": "v", "title": "x"}],
        ),
        (
            ["references", 0],
            {"type": "delete_field", "field": "title"},
            "references",
            [{"url": "u", "title": ""}],
        ),
        ([], {"type": "set", "field": "priority", "value": "high"}, "priority", "high"),
        ([], {"type": "merge", "value": {"labels": ["y"]}}, "labels", ["y"]),
        ([], {"type": "delete_field", "field": "labels"}, "labels", []),
        ([], {"type": "delete_field", "field": "status"}, "status", "open"),
    ],
)
def test_an_operation_changes_its_field_and_no_other(
    alice: User, rest: list[Any], operation: dict[str, Any], field: str, value: Any
) -> None:
    task = make_task(
        description="one\ntwo\n",
        evidence=["a", "b"],
        labels=["x"],
        status="blocked",
        references=[{"url": "u", "title": "x"}],
    )
    before = document_of(task)
    write(alice, task, *rest, **operation)
    assert document_of(again(task)) == {**before, field: value}
    assert is_replayed(task)


@pytest.mark.parametrize("name", ["epic_id", "parent_id"])
def test_a_task_moves_to_an_epic_and_out_of_it(alice: User, name: str) -> None:
    epic, task = make_epic(), make_task()
    write(alice, task, name, type="set", value=epic.ref)
    assert again(task).epic == epic
    write(alice, task, type="delete_field", field=name)
    assert again(task).epic is None
    assert is_replayed(task)


def test_a_title_that_an_operation_leaves_ragged_is_trimmed_in_row_answer_and_history(
    alice: User,
) -> None:
    task = make_task(title="Login")
    answer = write(alice, task, "title", type="append", content=" page  ")
    assert again(task).title == "Login page"
    assert answer["diff"].split("\n")[-2] == "+Login page"
    assert is_replayed(task)
    write(alice, task, "title", type="str_replace", old_str="Login ", new_str="")
    assert is_replayed(task)


def test_a_write_is_recorded_with_its_change_and_revision(alice: User) -> None:
    task = make_task()
    actor = as_actor(alice, "mcp", agent="claude", request_id="r-2")
    write_path.write(
        actor, task_uri(task, "description"), {"type": "append", "content": "x" * 1000}
    )
    change = Change.objects.get(object_id=task.pk, version=2)
    assert (change.action, change.fields, change.uri) == (
        "update",
        ["description"],
        task_uri(task, "description"),
    )
    assert (change.author, change.via, change.agent, change.request_id) == (
        alice,
        "mcp",
        "claude",
        "r-2",
    )
    assert change.operation == {"type": "append", "content": "x" * 200 + "…"}
    assert change.revision.delta == {"description": {"splices": [[0, 0, "x" * 1000]]}}


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        ("t%69tle", "title"),
        ("parent_id", "epic_id"),
        ("evidence/00", "evidence/0"),
        ("evidence/0", "evidence/0"),
    ],
)
def test_a_change_names_the_address_as_we_write_it(alice: User, given: str, recorded: str) -> None:
    task = make_task(evidence=["a"])
    value = make_epic().ref if recorded == "epic_id" else "b"
    answer = write(alice, task, given, type="set", value=value)
    assert answer["uri"] == task_uri(task, given)
    assert Change.objects.get(kind="task", version=2).uri == task_uri(task, recorded)


def test_a_write_that_changes_nothing_leaves_no_trace(alice: User) -> None:
    task = make_task(description="text", labels=["x"])
    before = everything()
    write(alice, task, "description", type="append", content="")
    write(alice, task, "labels", type="array_append", value=" x ")
    write(alice, task, type="merge", value={})
    write(alice, task, type="merge", value={"status": "open", "title": " A task "})
    assert everything() == before


def test_a_rehearsal_answers_the_diff_and_leaves_nothing(alice: User) -> None:
    task = make_task(description="a")
    before = everything()
    answer = write_path.write(
        as_actor(alice),
        task_uri(task, "description"),
        {"type": "append", "content": "b"},
        dry_run=True,
    )
    assert "+ab" in answer["diff"]
    assert everything() == before


@pytest.mark.parametrize(
    ("rest", "operation", "error"),
    [
        (["status"], {"type": "append", "content": "x"}, InvalidOperation),
        (["description"], {"type": "array_append", "value": "x"}, InvalidOperation),
        (["evidence"], {"type": "append", "content": "x"}, InvalidOperation),
        (["evidence", 0], {"type": "restore", "version": 1}, InvalidOperation),
        ([], {"type": "append", "content": "x"}, InvalidOperation),
        (
            ["description"],
            {"type": "str_replace", "old_str": "absent", "new_str": ""},
            OperationFailed,
        ),
        (["evidence"], {"type": "array_remove", "index": 5}, OperationFailed),
        (["evidence", 5], {"type": "set", "value": "x"}, NotFound),
        (["evidence", "x"], {"type": "set", "value": "x"}, NotFound),
        (["evidence", "-1"], {"type": "set", "value": "x"}, NotFound),
        (["evidence", "٣"], {"type": "set", "value": "x"}, NotFound),
        (["title", 0], {"type": "set", "value": "x"}, NotFound),
        (["colour"], {"type": "set", "value": "x"}, NotFound),
        (["title"], {"type": "set", "value": ""}, ValidationFailed),
        (["title"], {"type": "append", "content": "x" * 200}, ValidationFailed),
        (["status"], {"type": "set", "value": "invalid_status"}, ValidationFailed),
        (["status"], {"type": "set", "value": float("nan")}, ValidationFailed),
        (["description"], {"type": "append", "content": "\x00"}, ValidationFailed),
        (["description"], {"type": "append", "content": "\ud800"}, ValidationFailed),
        (["description"], {"type": "append", "content": "x" * (MAX_TEXT + 1)}, ValidationFailed),
        (["evidence", 0], {"type": "set", "value": 3}, ValidationFailed),
        (["references", 0], {"type": "set", "value": 5}, ValidationFailed),
        (["references", 0], {"type": "delete_field", "field": "url"}, ValidationFailed),
        ([], {"type": "set", "value": "x"}, ValidationFailed),
        ([], {"type": "set", "field": ["title"], "value": "x"}, ValidationFailed),
        ([], {"type": "delete_field", "field": "title"}, ValidationFailed),
        ([], {"type": "delete_field", "field": ["title"]}, ValidationFailed),
        ([], {"type": "delete_field", "field": None}, ValidationFailed),
        ([], {"type": "delete_field", "field": "colour"}, ValidationFailed),
        ([], {"type": "merge", "value": {"title": "fine", "colour": "red"}}, ValidationFailed),
        ([], {"type": "merge", "value": {"title": "fine", "labels": {"a": 1}}}, ValidationFailed),
        ([], {"type": "restore", "version": 0}, ValidationFailed),
        ([], {"type": "restore", "version": "1"}, ValidationFailed),
        ([], {"type": "restore", "version": True}, ValidationFailed),
        ([], {"type": "restore", "version": 2}, NotFound),
        ([], {"type": "restore", "version": 2**31}, NotFound),
        ([], {"type": "restore", "version": 10**30}, NotFound),
        (["title"], {"type": "restore", "version": 2}, NotFound),
    ],
)
def test_a_bad_operation_gets_its_error_and_changes_nothing(
    alice: User, rest: list[Any], operation: dict[str, Any], error: type[BacklogError]
) -> None:
    task = make_task(description="text", evidence=["a"], references=["u"])
    before = everything()
    with pytest.raises(BacklogError) as caught:
        write(alice, task, *rest, **operation)
    assert type(caught.value) is error
    assert everything() == before


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("mcp://backlog/tasks/TASK-0404/title", NotFound),
        ("mcp://backlog/tasks/EPIC-0001/title", NotFound),
        ("mcp://backlog/tasks/TASK-1", NotFound),
        ("mcp://backlog/tasks/TASK-999999999999999", NotFound),
        ("mcp://backlog/comments/1", NotFound),
        ("mcp://backlog/comments/999999999999999999", NotFound),
        ("mcp://backlog/comments/9999999999999999999", NotFound),
        ("mcp://backlog/comments/x", NotFound),
        ("mcp://backlog/resources/absent.md", NotFound),
        ("mcp://backlog/tasks", InvalidOperation),
        ("mcp://backlog/nothing/x", InvalidUri),
        ("mcp://other/tasks/TASK-0001/title", InvalidUri),
        ("mcp://backlog/tasks/TASK-0001/title/0/0", InvalidUri),
        ("ib://client/resources/1", InvalidOperation),
        ("file:///srv/a.md", InvalidOperation),
        ("not a uri", InvalidUri),
        ("mcp://backlog/tasks/TASK-0001/title?version=1", InvalidOperation),
        ("mcp://backlog/tasks/TASK-0001/title@v1", InvalidOperation),
        ("mcp://backlog/tasks/TASK-0001/file", InvalidOperation),
        ("mcp://backlog/tasks/TASK-0001/versions", InvalidOperation),
    ],
)
def test_an_address_that_cannot_be_written_says_why(
    alice: User, uri: str, error: type[BacklogError]
) -> None:
    make_task()
    before = everything()
    with pytest.raises(BacklogError) as caught:
        write_path.write(as_actor(alice), uri, {"type": "set", "value": "x"})
    assert type(caught.value) is error
    assert everything() == before
    if error is InvalidUri:
        assert caught.value.details["patterns"]


def test_a_label_element_set_to_another_label_is_refused(alice: User) -> None:
    task = make_task(labels=["a", "b"])
    before = everything()
    with pytest.raises(BacklogError):
        write(alice, task, "labels", 1, type="set", value="a")
    assert everything() == before


def test_restore_brings_one_field_back(alice: User) -> None:
    task = make_task(title="First", description="one")
    write(alice, task, "title", type="set", value="Second")
    write(alice, task, "description", type="append", content=" two")
    answer = write(alice, task, "title", type="restore", version=1)
    assert (again(task).title, again(task).description, answer["version"]) == (
        "First",
        "one two",
        4,
    )
    assert is_replayed(task)


def test_restore_brings_the_whole_back_as_a_new_version(alice: User) -> None:
    task = make_task(title="First", description="one", labels=["x"])
    then = document_of(task)
    write(alice, task, type="merge", value={"title": "Second", "labels": ["y"], "status": "done"})
    write(alice, task, "description", type="set", value="other")
    answer = write(alice, task, type="restore", version=1)
    assert document_of(again(task)) == then
    assert answer["version"] == 4
    assert set(answer["diff"]) == {"title", "labels", "status", "description"}
    assert is_replayed(task)


def test_a_comment_is_edited_at_its_own_address(alice: User) -> None:
    comment = write_path.add_comment(as_actor(alice), uri_of(make_task()), "frist")
    answer = write(alice, comment, type="str_replace", old_str="frist", new_str="first")
    assert (again(comment).body, answer["version"]) == ("first", 2)
    assert Change.objects.get(kind="comment", version=2).uri == address(comment)
    assert is_replayed(comment)


def test_the_row_keeps_the_versions_of_its_fields(alice: User) -> None:
    task = make_task()
    write(alice, task, "title", type="set", value="B")
    write(alice, task, type="merge", value={"status": "done", "labels": ["x"]})
    row = Task.objects.get(pk=task.pk)
    assert row.version == 3
    assert row.field_versions == {"title": 2, "status": 3, "labels": 3}
    assert Revision.objects.filter(kind="task", object_id=task.pk).count() == 3
