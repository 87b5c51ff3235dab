"""What a write refers to may be deleted before it commits: then it is refused as a conflict, and leaves nothing."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection

from resources_app import writing
from resources_app.documents import uri_of
from resources_app.errors import BacklogError, Conflict
from resources_app.models import Task, TaskDependency
from tests.factories import as_actor, make_epic, make_task
from tests.resources_app.acting import write
from tests.resources_app.elsewhere import Elsewhere, overlapping

pytestmark = [pytest.mark.django_db(transaction=True, serialized_rollback=True), overlapping]


def refused_while(deletion: Elsewhere, work: threading.Thread, errors: list[BacklogError]) -> type[BacklogError]:
    """The write waits, when it commits, for the deletion to be over."""
    with deletion:
        work.start()
        while not somebody_waits():
            assert work.is_alive(), errors
    work.join(60)
    (error,) = errors
    return type(error)


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def in_thread(work: object, errors: list[BacklogError]) -> threading.Thread:
    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BacklogError as error:
            errors.append(error)
        finally:
            connection.close()

    return threading.Thread(target=run, daemon=True)


def test_an_epic_deleted_at_the_same_moment_is_a_conflict(alice: User, carol: User) -> None:
    epic = make_epic()
    errors: list[BacklogError] = []
    deletion = Elsewhere(lambda: writing.delete_permanently(as_actor(carol), uri_of(epic)))
    creation = in_thread(lambda: make_task(actor=as_actor(alice), epic_id=epic.ref), errors)
    assert refused_while(deletion, creation, errors) is Conflict
    assert not Task.objects.exists()


def test_a_dependency_deleted_at_the_same_moment_is_a_conflict(alice: User, carol: User) -> None:
    needed, task = make_task(), make_task()
    errors: list[BacklogError] = []
    deletion = Elsewhere(lambda: writing.delete_permanently(as_actor(carol), uri_of(needed)))
    edit = in_thread(lambda: write(alice, task, "depends_on", type="set", value=[needed.ref]), errors)
    assert refused_while(deletion, edit, errors) is Conflict
    task.refresh_from_db()
    assert (task.depends_on, task.version) == ([], 1)
    assert not TaskDependency.objects.exists()
