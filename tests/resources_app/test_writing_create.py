"""Test creating tasks, epics and comments: one transaction leaves the row, its first revision and
its change.
"""

import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.errors import BacklogError, NotFound, PermissionDenied, ValidationFailed
from resources_app.history import revisions
from resources_app.history.documents import document_of, uri_of
from resources_app.models import Change, Comment, Epic, Revision, Task
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task
from tests.resources_app.acting import address, again, everything

pytestmark = pytest.mark.django_db


def test_a_new_task_has_the_next_number_and_the_defaults(alice: User) -> None:
    first, second = (
        make_task(actor=as_actor(alice)),
        make_task(actor=as_actor(alice), title="Second"),
    )
    assert (first.ref, second.ref) == ("TASK-0001", "TASK-0002")
    assert document_of(again(second)) == {
        "title": "Second",
        "description": "",
        "status": "open",
        "priority": "none",
        "labels": [],
        "assignee": None,
        "due_date": None,
        "evidence": [],
        "blocked_reason": [],
        "references": [],
        "groups": [],
        "epic_id": None,
        "depends_on": [],
        "estimate": None,
        "archived_at": None,
        "extra": {},
    }


def test_tasks_and_epics_count_apart() -> None:
    assert [make_task().ref, make_epic().ref, make_task().ref] == [
        "TASK-0001",
        "EPIC-0001",
        "TASK-0002",
    ]


def test_every_field_can_be_given_at_once(alice: User) -> None:
    epic, needed = make_epic(), make_task()
    values: dict[str, Any] = {
        "title": "All of it",
        "description": "# 👍\r\n",
        "status": "blocked",
        "priority": "urgent",
        "labels": ["a", "b"],
        "assignee": "alice",
        "due_date": "2027-02-28",
        "evidence": ["seen "],
        "blocked_reason": ["waiting"],
        "references": [{"url": "https://example.org", "title": "there"}],
        "groups": ["contributor"],
        "epic_id": epic.ref,
        "depends_on": [needed.ref],
        "estimate": 2.5,
    }
    task = make_task(actor=as_actor(alice), **values)
    assert document_of(again(task)) == {**values, "archived_at": None, "extra": {}}


def test_parent_id_is_another_name_for_epic_id() -> None:
    epic = make_epic()
    assert make_task(parent_id=epic.ref).epic == epic
    assert make_task(parent_id=epic.ref, epic_id=epic.ref).epic == epic
    assert make_task(parent_id="", epic_id=None).epic is None
    assert make_task(epic_id=None, parent_id="").epic is None


def test_parent_id_and_epic_id_must_not_differ() -> None:
    one, other = make_epic(), make_epic()
    with pytest.raises(ValidationFailed):
        make_task(parent_id=one.ref, epic_id=other.ref)


def test_the_first_revision_is_whole_and_the_change_says_who_did_what(alice: User) -> None:
    actor = as_actor(alice, "mcp", agent="claude", request_id="r-1")
    task = make_task(actor=actor, title="New", labels=["x"])
    revision = Revision.objects.select_related("change").get(kind="task", object_id=task.pk)
    assert revision.snapshot == document_of(task) == revisions.document_at("task", task.pk, 1)
    change = revision.change
    assert (change.action, change.version, change.ref, change.uri) == (
        "create",
        1,
        task.ref,
        uri_of(task),
    )
    assert (change.author, change.via, change.agent, change.request_id) == (
        alice,
        "mcp",
        "claude",
        "r-1",
    )
    assert set(change.fields) == {"title", "status", "priority", "labels"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": None}, "title"),
        ({"status": "todo"}, "status"),
        ({"labels": "x"}, "labels"),
        ({"description": "a\x00b"}, "description"),
        ({"description": "\ud800"}, "description"),
        ({"colour": "red"}, "colour"),
        ({"id": "TASK-0009"}, "id"),
        ({"version": 7}, "version"),
        ({"created_at": "2020-01-01"}, "created_at"),
        ({"epic_id": "EPIC-0404"}, "epic_id"),
        ({"epic_id": "TASK-0001"}, "epic_id"),
        ({"depends_on": ["TASK-0404"]}, "depends_on"),
        ({"assignee": "nobody"}, "assignee"),
        ({"groups": ["strangers"]}, "groups"),
    ],
)
def test_a_bad_value_is_named_and_leaves_nothing(
    alice: User, values: dict[str, Any], field: str
) -> None:
    before = everything()
    with pytest.raises(BacklogError) as caught:
        make_task(actor=as_actor(alice), **values)
    assert caught.value.details["field"] == field
    assert everything() == before


def test_a_title_must_be_given(alice: User) -> None:
    with pytest.raises(ValidationFailed) as caught:
        write_path.create_item(as_actor(alice), "task", {})
    assert caught.value.details["field"] == "title"


def test_the_id_that_a_caller_gave_its_request_is_cut_to_what_fits(alice: User) -> None:
    task = make_task(actor=as_actor(alice, request_id="r" * 1000))
    assert Change.objects.get(object_id=task.pk).request_id == "r" * 64


def test_an_epic_has_no_epic_and_no_dependencies() -> None:
    for name in ("epic_id", "parent_id", "depends_on"):
        with pytest.raises(ValidationFailed) as caught:
            make_epic(**{name: None})
        assert caught.value.details["field"] == name


def test_a_refused_task_does_not_use_up_a_number() -> None:
    with pytest.raises(ValidationFailed):
        make_task(depends_on=["TASK-0404"])
    assert make_task().ref == "TASK-0001"


def test_an_import_keeps_number_times_and_unknown_keys(carol: User) -> None:
    then = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
    task = write_path.create_item(
        as_actor(carol, "import"),
        "task",
        {"title": "Old"},
        number=41,
        created_at=then,
        extra={"mood": "good"},
    )
    assert (again(task).created_at, again(task).updated_at, again(task).extra) == (
        then,
        then,
        {"mood": "good"},
    )
    assert make_task().ref == "TASK-0042"


def test_an_import_of_a_low_number_does_not_turn_the_counter_back(carol: User) -> None:
    _, second, _ = make_task(), make_task(), make_task()
    write_path.delete_permanently(as_actor(carol), uri_of(second))
    write_path.create_item(as_actor(carol, "import"), "task", {"title": "Again"}, number=2)
    assert make_task().ref == "TASK-0004"


def test_a_number_is_not_given_out_again_after_a_deletion(carol: User) -> None:
    task = make_task()
    write_path.delete_permanently(as_actor(carol), uri_of(task))
    assert make_task().number == task.number + 1


def test_a_comment_belongs_to_a_task_or_an_epic(alice: User) -> None:
    for item in (make_task(), make_epic()):
        comment = write_path.add_comment(as_actor(alice, agent="claude"), uri_of(item), " well \n")
        stored = again(comment)
        assert (stored.item, stored.body, stored.author, stored.agent) == (
            item,
            " well \n",
            alice,
            "claude",
        )
        change = Change.objects.get(kind="comment", object_id=comment.pk)
        assert (change.action, change.uri) == ("create", uri_of(comment))


@pytest.mark.parametrize("body", ["", " \n", None, 3, "a\x00b"])
def test_an_empty_or_unsafe_comment_is_refused(alice: User, body: Any) -> None:
    task = make_task()
    with pytest.raises(ValidationFailed) as caught:
        write_path.add_comment(as_actor(alice), uri_of(task), body)
    assert caught.value.details["field"] == "body"
    assert not Comment.objects.exists()


def test_a_comment_needs_a_whole_item_that_is_there(alice: User) -> None:
    task = make_task()
    with pytest.raises(ValidationFailed):
        write_path.add_comment(as_actor(alice), address(task, "title"), "x")
    with pytest.raises(NotFound):
        write_path.add_comment(as_actor(alice), "mcp://backlog/tasks/TASK-0404", "x")


@pytest.mark.parametrize("kind", ["task", "epic"])
def test_readers_and_read_tokens_create_nothing(
    alice: User, bob: User, mallory: User, kind: str
) -> None:
    for actor in (as_actor(bob), as_actor(mallory), as_actor(alice, scope="read")):
        with pytest.raises(PermissionDenied):
            write_path.create_item(actor, kind, {"title": "No"})
    assert not Task.objects.exists()
    assert not Epic.objects.exists()
