"""Test that archived objects are read-only until restored; deleted ones leave only a tombstone."""

import pytest
from django.contrib.auth.models import User

from resources_app.errors import BacklogError, NotFound, PermissionDenied, ValidationFailed
from resources_app.history import revisions
from resources_app.history.documents import uri_of
from resources_app.models import Change, Comment, Revision, Task, TaskDependency
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task
from tests.resources_app.acting import address, again, everything, is_replayed, write

pytestmark = pytest.mark.django_db


def test_an_archived_task_is_read_only_and_says_so(alice: User) -> None:
    task = make_task()
    write_path.archive(as_actor(alice), uri_of(task))
    before = everything()
    for rest in ([], ["title"], ["labels", 0]):
        with pytest.raises(PermissionDenied) as caught:
            write(alice, task, *rest, type="set", value="x")
        assert caught.value.message == "Archived tasks are read-only"
    with pytest.raises(PermissionDenied):
        write_path.add_comment(as_actor(alice), uri_of(task), "too late")
    assert everything() == before


@pytest.mark.parametrize("rest", ["TASK-0001/description", "TASK-0001", "TASK-0404/title", ""])
def test_the_archive_is_no_place_to_write(alice: User, rest: str) -> None:
    write_path.archive(as_actor(alice), uri_of(make_task()))
    with pytest.raises(PermissionDenied) as caught:
        write_path.write(
            as_actor(alice),
            f"mcp://backlog/archive/{rest}".rstrip("/"),
            {"type": "append", "content": "x"},
        )
    assert caught.value.message == "Archived tasks are read-only"


def test_comments_on_an_archived_task_are_read_only_too(alice: User) -> None:
    task = make_task()
    comment = write_path.add_comment(as_actor(alice), uri_of(task), "first")
    write_path.archive(as_actor(alice), uri_of(task))
    with pytest.raises(PermissionDenied):
        write(alice, comment, type="append", content="!")
    assert again(comment).body == "first"


def test_archiving_and_unarchiving_are_versions_of_their_own(alice: User) -> None:
    task = make_task()
    write_path.archive(as_actor(alice, "mcp", agent="claude"), uri_of(task))
    assert again(task).archived_at
    assert not Task.objects.live().exists()
    write_path.unarchive(as_actor(alice), uri_of(task))
    assert again(task).archived_at is None
    assert list(Change.objects.order_by("id").values_list("action", "version", "agent")) == [
        ("create", 1, ""),
        ("archive", 2, "claude"),
        ("unarchive", 3, ""),
    ]
    assert revisions.document_at("task", task.pk, 2)["archived_at"]
    assert is_replayed(task)
    assert write(alice, task, "title", type="set", value="Back")["version"] == 4


def test_archiving_twice_is_archiving_once(alice: User) -> None:
    task = make_task()
    first = write_path.archive(as_actor(alice), uri_of(task))
    before = everything()
    assert write_path.archive(as_actor(alice), uri_of(task)).archived_at == first.archived_at
    assert everything() == before


def test_unarchiving_what_is_not_archived_changes_nothing(alice: User) -> None:
    task = make_task()
    before = everything()
    write_path.unarchive(as_actor(alice), uri_of(task))
    assert everything() == before


def test_a_comment_is_archived_by_itself(alice: User) -> None:
    comment = write_path.add_comment(as_actor(alice), uri_of(make_task()), "x")
    write_path.archive(as_actor(alice), uri_of(comment))
    assert not Comment.objects.live().exists()
    with pytest.raises(PermissionDenied):
        write(alice, comment, type="append", content="!")


def test_a_field_cannot_be_archived(alice: User) -> None:
    with pytest.raises(ValidationFailed):
        write_path.archive(as_actor(alice), address(make_task(), "title"))


def test_only_admins_delete_for_good(alice: User, carol: User) -> None:
    task = make_task()
    for actor in (as_actor(alice), as_actor(carol, scope="write")):
        with pytest.raises(PermissionDenied):
            write_path.delete_permanently(actor, uri_of(task))
    assert again(task)


def test_deleting_for_good_takes_every_text_and_keeps_that_it_happened(carol: User) -> None:
    task = make_task(description="secret plan", labels=["x"])
    write(carol, task, "description", type="append", content=" secret detail")
    comment = write_path.add_comment(as_actor(carol), uri_of(task), "secret remark")
    write(carol, comment, type="append", content=" secret afterthought")
    write_path.delete_permanently(as_actor(carol), uri_of(task))
    assert not Task.objects.exists()
    assert not Comment.objects.exists()
    assert not Revision.objects.exists()
    assert "secret" not in str(everything())
    last = Change.objects.order_by("id").last()
    assert last is not None
    assert (last.action, last.ref, last.author, last.version) == ("delete", task.ref, carol, 3)


def test_what_others_need_is_not_deleted(carol: User) -> None:
    needed, epic = make_task(), make_epic()
    waiting = make_task(depends_on=[needed.ref], epic_id=epic.ref)
    for thing in (needed, epic):
        before = everything()
        with pytest.raises(ValidationFailed) as caught:
            write_path.delete_permanently(as_actor(carol), uri_of(thing))
        assert caught.value.details["needed_by"] == [waiting.ref]
        assert everything() == before


def test_a_deleted_task_no_longer_needs_anything(carol: User) -> None:
    needed = make_task()
    waiting = make_task(depends_on=[needed.ref])
    write_path.delete_permanently(as_actor(carol), uri_of(waiting))
    assert not TaskDependency.objects.exists()
    write_path.delete_permanently(as_actor(carol), uri_of(needed))
    with pytest.raises(NotFound):
        write(carol, needed, "title", type="set", value="x")


@pytest.mark.parametrize(
    "act", [write_path.archive, write_path.unarchive, write_path.delete_permanently]
)
def test_what_is_not_there_cannot_be_archived_or_deleted(carol: User, act: object) -> None:
    for uri in ("mcp://backlog/tasks/TASK-0404", "mcp://backlog/tasks", "nonsense"):
        with pytest.raises(BacklogError):
            act(as_actor(carol), uri)  # type: ignore[operator]
