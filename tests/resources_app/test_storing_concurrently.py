"""Test concurrent writers: one path has one winner, folders appear and vanish safely, scans run one
at a time.
"""

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from pytest_django import Settings

from resources_app.errors import BacklogError, Unavailable, ValidationFailed
from resources_app.interchange.scan import ScanReport, scan
from resources_app.models import Change, Folder, Resource
from resources_app.writing import stored_files
from tests.factories import as_actor, make_user

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)
WRITERS = 6


def answer_of(call: Callable[[], Any]) -> Any:
    """Call and retry while the database is busy, as a client should.

    (In-memory SQLite also rejects readers during a write.)
    """
    for _ in range(200):
        try:
            return call()
        except (Unavailable, OperationalError):
            time.sleep(random.uniform(0.005, 0.05))
        except BacklogError as error:
            return error
    raise AssertionError("the database stayed busy")


def all_at_once(*calls: Callable[[], Any]) -> list[Any]:
    barrier = Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        barrier.wait(timeout=30)
        try:
            return answer_of(call)
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


@pytest.fixture
def writer() -> User:
    return make_user("alice", "contributor")


def test_one_path_has_one_winner(writer: User) -> None:
    answers = all_at_once(
        *(
            lambda n=n: stored_files.create_resource(as_actor(writer), "resources/new/a.md", f"{n}")
            for n in range(WRITERS)
        )
    )
    won = [answer for answer in answers if isinstance(answer, Resource)]
    assert len(won) == 1 and all(
        isinstance(answer, Resource | ValidationFailed) for answer in answers
    )
    assert Resource.objects.get().content == won[0].content and Change.objects.count() == 1


def test_files_in_the_same_new_folders_all_arrive(writer: User) -> None:
    answers = all_at_once(
        *(
            lambda n=n: stored_files.create_resource(as_actor(writer), f"resources/x/y/{n}.md", "t")
            for n in range(WRITERS)
        )
    )
    assert all(isinstance(answer, Resource) for answer in answers)
    assert (
        Folder.objects.count() == 3 and Resource.objects.below("resources/x/y").count() == WRITERS
    )


def test_a_folder_that_is_left_and_entered_at_the_same_moment_is_there(writer: User) -> None:
    for turn in range(5):
        stored_files.create_resource(as_actor(writer), f"resources/f{turn}/old.md", "t")
        answers = all_at_once(
            lambda turn=turn: stored_files.move(
                as_actor(writer), f"resources/f{turn}/old.md", f"resources/m{turn}.md"
            ),
            lambda turn=turn: stored_files.create_resource(
                as_actor(writer), f"resources/f{turn}/new.md", "t"
            ),
            lambda turn=turn: stored_files.create_resource(
                as_actor(writer), f"resources/f{turn}/deep/er/new.md", "t"
            ),
        )
        assert all(isinstance(answer, Resource) for answer in answers)
        for answer in answers:
            if isinstance(answer, Resource):
                kept = Resource.objects.get(pk=answer.pk)
                assert kept.folder.path == kept.path.rpartition("/")[0]


def test_a_file_and_a_folder_of_the_same_name_are_not_made_together(writer: User) -> None:
    for turn in range(5):
        all_at_once(
            lambda turn=turn: stored_files.create_resource(
                as_actor(writer), f"resources/n{turn}", "t"
            ),
            lambda turn=turn: stored_files.create_resource(
                as_actor(writer), f"resources/n{turn}/x", "t"
            ),
        )
    assert Resource.objects.filter(path__startswith="resources/n").count() == 5


def test_scans_at_the_same_time_mirror_each_file_once(tmp_path: Path, settings: Settings) -> None:
    (tmp_path / "sub").mkdir()
    for number in range(30):
        (tmp_path / "sub" / f"{number}.md").write_text(str(number))
    settings.RESOURCE_ROOTS = {"docs": tmp_path}
    assert all(isinstance(report, ScanReport) for report in all_at_once(scan, scan, scan))
    assert Resource.objects.count() == Change.objects.count() == 30
