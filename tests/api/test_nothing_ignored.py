"""Test that parameters, bodies and values that a REST route would not read are rejected before
anything is written.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.history.documents import uri_of
from resources_app.models import Change
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_task

TASK = "/api/v1/tasks/TASK-0001/"
FILE = "/api/v1/resources/a.md"


@pytest.fixture
def client(carol: User) -> ApiClient:
    comment = write_path.add_comment(as_actor(carol), uri_of(make_task()), "said")
    assert comment.pk
    stored_files.create_resource(as_actor(carol), "resources/a.md", "text")
    return ApiClient(carol)


def refused(client: ApiClient, method: str, path: str, body: Any = None) -> dict[str, Any]:
    before = Change.objects.count()
    answer = client.request(method, path, body)
    error = error_of(answer)
    assert (answer.status_code, error["code"]) == (400, "validation_failed"), answer.content
    assert Change.objects.count() == before, "it was written before it was refused"
    details: dict[str, Any] = error["details"]
    return details


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/api/v1/tasks/", {"title": "New"}),
        ("patch", TASK, {"status": "done"}),
        ("delete", TASK, None),
        ("post", f"{TASK}unarchive/", None),
        ("post", f"{TASK}comments/", {"body": "New"}),
        ("post", "/api/v1/comments/", {"item_id": "TASK-0001", "body": "New"}),
        ("post", "/api/v1/resources/", {"path": "new.md", "content": "t"}),
        ("put", FILE, "other"),
        ("patch", FILE, {"title": "T"}),
        ("delete", FILE, None),
        (
            "post",
            "/api/v1/write/",
            {"uri": "mcp://backlog/tasks/TASK-0001", "operation": {"type": "restore"}},
        ),
        ("post", "/api/v1/write_batch/", {"operations": []}),
        ("post", "/api/v1/undo/", {"batch": "x"}),
        ("get", "/api/v1/ib/", None),
        ("get", TASK, None),
        ("get", "/api/v1/search/", None),
    ],
)
def test_an_unknown_parameter_is_refused_by_name(
    client: ApiClient, method: str, path: str, body: Any
) -> None:
    assert refused(client, method, f"{path}?bogus=1", body)["field"] == "bogus"


@pytest.mark.parametrize("path", [TASK, FILE])
def test_a_delete_takes_no_body(client: ApiClient, path: str) -> None:
    assert refused(client, "delete", path, {"etag": "1-x"})["field"] == "body"


def test_a_flag_is_true_or_false(client: ApiClient) -> None:
    for value in ("yes", "TRUE", ""):
        assert refused(client, "delete", f"{TASK}?permanent={value}")["field"] == "permanent"
        assert refused(client, "get", f"{FILE}?download={value}")["field"] == "download"
    assert client.get(f"{FILE}?download=1").content == b"text"
    assert client.delete(f"{TASK}?permanent=1").status_code == 204
    assert client.get(TASK).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/changes/?limit=1&limit=2",
        "/api/v1/tasks/?limit=1&limit=2",
        "/api/v1/search/?q=a&q=b",
        "/api/v1/context/?id=TASK-0001&depth=1&depth=2",
        "/api/v1/resource/?uri=mcp://backlog/tasks&uri=mcp://backlog/epics",
        "/api/v1/resource/?uri=mcp://backlog/archive?type=epic%26type=task",
        f"{FILE}?download=true&download=false",
    ],
)
def test_of_two_values_none_is_dropped(client: ApiClient, path: str) -> None:
    assert refused(client, "get", path)["field"]


def test_an_undo_names_a_batch_or_a_run(client: ApiClient) -> None:
    details = refused(
        client, "post", "/api/v1/undo/", {"batch": "x", "agent": "me", "since": "2026-01-01"}
    )
    assert details["field"] == "batch"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/api/v1/resources/", {"path": "new.md", "content": "t"}),
        ("patch", TASK, {"title": "Once"}),
        ("patch", FILE, {"path": "b.md"}),
    ],
)
def test_an_idempotency_key_holds_on_every_route_that_is_not_idempotent_by_itself(
    client: ApiClient, method: str, path: str, body: Any
) -> None:
    first = client.request(method, path, body, Idempotency_Key="k")
    written = Change.objects.count()
    again = client.request(method, path, body, Idempotency_Key="k")
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    assert Change.objects.count() == written
    assert client.request(method, path, {"title": "Other"}, Idempotency_Key="k").status_code == 400
