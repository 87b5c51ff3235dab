"""Test that single-line values stay one line: no control or bidirectional formatting characters, at
any entry point.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from resources_app.models import Resource
from resources_app.writing import stored_files
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_task
from tests.viewer.browsing import signed_in

pytestmark = pytest.mark.django_db

ODD = "\u202eA\x1b[31m\tb\x07\r\nc\u2066\u200f d\u2028e\x85f\ufeff"
CLEAN = "A[31m b c d e f"


@pytest.fixture(params=["rest", "mcp", "viewer", "write"])
def create(request: Any, alice: User) -> Any:
    """Return a function that creates a task with a title at one entry point, and returns what is
    stored.
    """

    def by_mcp(title: str) -> Any:
        with acting_as(as_actor(alice, via="mcp")):
            return BacklogTools().backlog_create(title=title)["title"]

    def by_page(title: str) -> Any:
        answer = signed_in(alice).post("/new/", {"title": title, "kind": "task", "description": ""})
        assert answer.status_code in {200, 204, 302}
        return (
            ApiClient(alice).get("/api/v1/tasks/?sort=id&order=desc").json()["results"][0]["title"]
        )

    def by_operation(title: str) -> Any:
        uri = f"mcp://backlog/tasks/{make_task().ref}/title"
        ApiClient(alice).post(
            "/api/v1/write/", {"uri": uri, "operation": {"type": "set", "value": title}}
        )
        return ApiClient(alice).get(f"/api/v1/resource/?uri={uri}").json()["contents"]

    doors = {"mcp": by_mcp, "viewer": by_page, "write": by_operation}
    return doors.get(
        request.param,
        lambda title: ApiClient(alice).post("/api/v1/tasks/", {"title": title}).json()["title"],
    )


def test_a_title_is_one_clean_line(create: Any) -> None:
    assert create(ODD) == CLEAN


def test_other_single_lines_are_too(alice: User) -> None:
    body = {
        "title": "T",
        "labels": [ODD],
        "references": [{"url": "https://example.com", "title": ODD}],
    }
    shown = ApiClient(alice).post("/api/v1/tasks/", body).json()
    assert (shown["labels"], shown["references"][0]["title"]) == ([CLEAN], CLEAN)
    stored_files.create_resource(as_actor(alice), "resources/a.md", "x", title=ODD, tags=[ODD])
    stored = Resource.objects.get(path="resources/a.md")
    assert (stored.title, stored.tags) == (CLEAN, [CLEAN])


def test_texts_keep_their_lines_and_scripts_their_joiners(alice: User) -> None:
    text, name = "a\n\tb", "می\u200cخواهم 👩\u200d💻"
    shown = (
        ApiClient(alice)
        .post("/api/v1/tasks/", {"title": name, "description": text, "evidence": [text]})
        .json()
    )
    assert (shown["title"], shown["description"], shown["evidence"]) == (name, text, [text])


@pytest.mark.parametrize("title", ["\u202e\u2066", "\n\t", "\x1b"])
def test_a_title_of_nothing_else_is_empty(alice: User, title: str) -> None:
    assert (
        error_of(ApiClient(alice).post("/api/v1/tasks/", {"title": title}))["code"]
        == "validation_failed"
    )


def test_the_length_counts_what_is_kept(alice: User) -> None:
    assert (
        ApiClient(alice).post("/api/v1/tasks/", {"title": "a" * 200 + "\u202e"}).status_code == 201
    )
