"""Test that pages of long texts end early and their cursor continues: a response is bounded at any
limit.
"""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User

from resources_app.models import Task
from resources_app.querying import weights
from resources_app.writing import write_path
from tests.api.clients import ApiClient
from tests.factories import as_actor

pytestmark = pytest.mark.django_db

LONG = "long " * 12_000  # heavier than a light row
COUNT = 5


@pytest.fixture
def long_tasks(alice: User, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Create tasks of which two fit into a response."""
    monkeypatch.setattr(weights, "MAX_ANSWER", 2 * len(LONG) + 100)
    monkeypatch.setattr("search_app.search.MAX_ANSWER", 2 * len(LONG) + 100)
    values = [
        {"title": f"Long {number}", "description": f"{number} {LONG}"[: len(LONG)]}
        for number in range(COUNT)
    ]
    return [write_path.create_item(as_actor(alice), "task", one).ref for one in values]


def pages(client: ApiClient, path: str, **parameters: Any) -> list[dict[str, Any]]:
    found, cursor = [], None
    while not found or cursor:
        answer = client.get(
            f"{path}?{urlencode(parameters | ({'cursor': cursor} if cursor else {}))}"
        )
        assert answer.status_code == 200, answer.content
        found.append(answer.json())
        cursor = answer.json()["next_cursor"]
    return found


@pytest.mark.parametrize("path", ["/api/v1/tasks/", "/api/v1/tasks/?search=long"])
def test_a_list_of_long_texts_is_cut_into_pages_that_miss_nothing(
    alice: User, long_tasks: list[str], path: str
) -> None:
    path, _, query = path.partition("?")
    given = dict([query.split("=")]) if query else {}
    found = pages(ApiClient(alice), path, limit="200", sort="id", **given)
    assert [[one["id"] for one in page["results"]] for page in found] == [
        long_tasks[:2],
        long_tasks[2:4],
        long_tasks[4:],
    ]
    assert {page["total"] for page in found} == {COUNT}
    assert all(len(one["description"]) == len(LONG) for page in found for one in page["results"])


def test_one_text_larger_than_an_answer_is_given_alone(alice: User, long_tasks: list[str]) -> None:
    Task.objects.filter(number=1).update(description=LONG * 3)
    first, *rest = pages(ApiClient(alice), "/api/v1/tasks/", sort="id")
    assert [one["id"] for one in first["results"]] == long_tasks[:1]
    assert [one["id"] for page in rest for one in page["results"]] == long_tasks[1:]


def test_a_list_of_short_texts_is_one_page(alice: User, long_tasks: list[str]) -> None:
    Task.objects.update(description="short", evidence=["seen"])
    [page] = pages(ApiClient(alice), "/api/v1/tasks/")
    assert {(one["description"], *one["evidence"]) for one in page["results"]} == {
        ("short", "seen")
    }


def test_long_comments_are_cut_into_pages(alice: User, long_tasks: list[str]) -> None:
    client = ApiClient(alice)
    uri = f"mcp://backlog/tasks/{long_tasks[0]}"
    written = [
        write_path.add_comment(as_actor(alice), uri, f"{number} {LONG}"[: len(LONG)]).pk
        for number in range(COUNT)
    ]
    found = pages(client, f"/api/v1/tasks/{long_tasks[0]}/comments/", limit="200")
    assert [[one["id"] for one in page["results"]] for page in found] == [
        written[:2],
        written[2:4],
        written[4:],
    ]
    assert {one["item_id"] for page in found for one in page["results"]} == {long_tasks[0]}


def test_search_with_content_is_cut_into_pages(alice: User, long_tasks: list[str]) -> None:
    found = pages(
        ApiClient(alice), "/api/v1/search/", q="long", limit="100", include_content="true"
    )
    assert max(len(page["results"]) for page in found) == 2
    assert sorted(one["id"] for page in found for one in page["results"]) == long_tasks
    assert {page["total"] for page in found} == {COUNT}
