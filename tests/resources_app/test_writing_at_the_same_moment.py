"""Test two transactions on the same rows: an overlapping deletion is a conflict, and a lock wait
loses nothing.
"""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from resources_app.errors import BacklogError, Conflict, NotFound, PermissionDenied
from resources_app.history.documents import uri_of
from resources_app.models import Comment, Epic, Task, TaskDependency
from resources_app.models.base import Versioned
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, make_user
from tests.resources_app.acting import again, is_replayed, write
from tests.resources_app.elsewhere import Elsewhere, overlapping

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), overlapping]


def refused_while(
    deletion: Elsewhere, work: threading.Thread, errors: list[BacklogError]
) -> type[BacklogError]:
    """Return the error of a write that waits, at commit, for the deletion to end."""
    with deletion:
        start_and_wait(work, 1)
    work.join(60)
    (error,) = errors
    return type(error)


def start_and_wait(work: threading.Thread, waiters: int) -> None:
    """Start the write and return once `waiters` transactions, including it, wait for a lock."""
    work.start()
    while waiting() < waiters:
        assert work.is_alive(), "it ended without having waited"


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND"
            " wait_event_type = 'Lock'"
        )
        return int(cursor.fetchone()[0])


def in_thread(work: Callable[[], object], errors: list[Any]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    return threading.Thread(target=run, daemon=True)


def test_an_epic_deleted_at_the_same_moment_is_a_conflict(alice: User, carol: User) -> None:
    epic = make_epic()
    errors: list[BacklogError] = []
    deletion = Elsewhere(lambda: write_path.delete_permanently(as_actor(carol), uri_of(epic)))
    creation = in_thread(lambda: make_task(actor=as_actor(alice), epic_id=epic.ref), errors)
    assert refused_while(deletion, creation, errors) is Conflict
    assert not Task.objects.exists()


def test_a_dependency_deleted_at_the_same_moment_is_a_conflict(alice: User, carol: User) -> None:
    needed, task = make_task(), make_task()
    errors: list[BacklogError] = []
    deletion = Elsewhere(lambda: write_path.delete_permanently(as_actor(carol), uri_of(needed)))
    edit = in_thread(
        lambda: write(alice, task, "depends_on", type="set", value=[needed.ref]), errors
    )
    assert refused_while(deletion, edit, errors) is Conflict
    task.refresh_from_db()
    assert (task.depends_on, task.version) == ([], 1)
    assert not TaskDependency.objects.exists()


def one_after_the_other(thing: Versioned, *writes: Callable[[], object]) -> list[Exception]:
    """Queue each write for the row behind the previous ones, then release all.

    Return what they raised.
    """
    errors: list[Exception] = []
    queue = [in_thread(work, errors) for work in writes]
    with Elsewhere(lambda: type(thing)._base_manager.select_for_update().get(pk=thing.pk)):
        for place, work in enumerate(queue, 1):
            start_and_wait(work, place)
    for work in queue:
        work.join(60)
    return errors


@pytest.mark.parametrize("make", [make_task, make_epic])
@pytest.mark.parametrize(("before", "after"), [(None, "bob"), ("alice", "bob"), ("alice", None)])
def test_a_write_behind_a_change_of_the_assignee_sees_the_new_one(
    alice: User, bob: User, make: Any, before: str | None, after: str | None
) -> None:
    item = make(assignee=before)
    first = partial(write, alice, item, "assignee", type="set", value=after)
    second = partial(write, alice, item, "description", type="append", content="+B")
    assert one_after_the_other(item, first, second) == []
    kept = again(item)
    assert (kept.assignee and kept.assignee.username, kept.description, kept.version) == (
        after,
        "+B",
        3,
    )
    assert is_replayed(item)


def test_a_comment_is_edited_behind_another_edit_and_behind_a_change_of_its_author(
    alice: User, bob: User
) -> None:
    epic = make_epic()
    comment = write_path.add_comment(as_actor(alice), uri_of(epic), "one")

    def lose_the_author() -> None:
        Comment.objects.filter(pk=comment.pk).update(author=bob)

    append = partial(write, alice, comment, type="append", content=" two")
    assert one_after_the_other(comment, append, append) == []
    errors: list[Exception] = []
    late = in_thread(append, errors)
    with Elsewhere(lose_the_author):
        start_and_wait(late, 1)
    late.join(60)
    (error,) = errors
    assert isinstance(error, PermissionDenied), "the comment is another author's by now"
    assert again(comment).body == "one two two"


def test_a_write_behind_a_change_of_the_groups_obeys_the_new_groups(carol: User) -> None:
    dana = make_user("dana", "contributor", "red")
    make_user("erin", "blue")
    task = make_task(groups=["red"])
    limit = partial(write, carol, task, "groups", type="set", value=["blue"])
    append = partial(write, dana, task, "description", type="append", content="seen")
    (error,) = one_after_the_other(task, limit, append)
    assert isinstance(error, NotFound)
    assert (again(task).description, again(task).version) == ("", 2)


def test_a_write_behind_a_move_to_another_epic_keeps_the_move(alice: User) -> None:
    one, other = make_epic(), make_epic()
    task = make_task(epic_id=one.ref)
    move = partial(write, alice, task, "epic_id", type="set", value=other.ref)
    append = partial(write, alice, task, "description", type="append", content="+B")
    assert one_after_the_other(task, move, append) == []
    assert (again(task).epic, again(task).description) == (Epic.objects.get(pk=other.pk), "+B")
    assert is_replayed(task)
