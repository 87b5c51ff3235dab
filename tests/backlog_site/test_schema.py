"""Test that a process whose database belongs to another release asks clients to retry, and says
why.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from resources_app.database import schema
from resources_app.models import Task
from resources_app.reading.get_resource import get_resource
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_task

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


@pytest.fixture
def task(alice: User) -> Task:
    return make_task()


@pytest.fixture
def api(alice: User) -> ApiClient:
    return ApiClient(alice)


def test_what_fails_on_a_newer_schema_can_be_sent_again(
    task: Task, api: ApiClient, newer_schema: str
) -> None:
    answers: list[Any] = [
        api.patch(f"/api/v1/tasks/{task.ref}/", {"title": "New"}),
        api.post("/api/v1/tasks/", {"title": "Another"}),
        api.get(f"/api/v1/tasks/{task.ref}/"),
    ]
    for answer in answers:
        error = error_of(answer)
        assert (answer.status_code, error["code"], error["retryable"]) == (
            503,
            "unavailable",
            True,
        ), error
        assert int(answer.headers["Retry-After"]) > 0
        assert error["details"] == {"unknown_migrations": [newer_schema]}


def test_pages_and_get_resource_say_the_same(alice: User, task: Task, newer_schema: str) -> None:
    client = Client()
    client.force_login(alice)
    page = client.get(f"/t/{task.ref}/")
    assert page.status_code == 503 and newer_schema in page.content.decode()
    answer = get_resource(as_actor(alice), f"mcp://backlog/tasks/{task.ref}")
    assert newer_schema in str(answer)


def test_a_process_that_is_newer_than_its_database_says_so_too(
    task: Task, api: ApiClient, newer_schema: str
) -> None:
    recorder = MigrationRecorder(connection)
    [newest] = MigrationLoader(connection).graph.leaf_nodes("resources_app")
    recorder.record_unapplied(*newer_schema.split(".", 1))
    recorder.record_unapplied(*newest)
    try:
        answer = api.patch(f"/api/v1/tasks/{task.ref}/", {"title": "New"})
    finally:
        recorder.record_applied(*newest)
    assert answer.status_code == 503
    assert error_of(answer)["details"] == {"missing_migrations": [".".join(newest)]}


def test_a_wrong_statement_on_the_right_schema_stays_a_fault(
    task: Task, api: ApiClient, newer_schema: str
) -> None:
    MigrationRecorder(connection).record_unapplied(*newer_schema.split(".", 1))
    api._client.raise_request_exception = False
    answer = api.patch(f"/api/v1/tasks/{task.ref}/", {"title": "New"})
    assert (answer.status_code, error_of(answer)["code"]) == (500, "internal_error")


def test_the_schema_of_this_release_is_known() -> None:
    assert (schema.unknown_migrations(), schema.missing_migrations()) == ([], [])
