"""Test estimates through REST: filters, sorts with tasks that have none, and watched lists."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.models import Change
from resources_app.reading.watching import matches
from tests.api.clients import ApiClient, error_of
from tests.factories import make_task

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(alice: User) -> ApiClient:
    for estimate in (5, None, 0, 2.5, None, 2.5):
        make_task(estimate=estimate)
    return ApiClient(alice)


def found(client: ApiClient, query: str) -> list[Any]:
    return [task["estimate"] for task in client.get(f"/api/v1/tasks/?{query}").json()["results"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sort=estimate", [0, 2.5, 2.5, 5, None, None]),
        ("sort=estimate&order=desc", [None, None, 5, 2.5, 2.5, 0]),
        ("filter=estimate>2.5", [5]),
        ("filter=estimate<=2.5&sort=estimate", [0, 2.5, 2.5]),
        ("estimate=0", [0]),
        ("estimate=", [None, None]),
        ("estimate=5&estimate=0&sort=estimate", [0, 5]),
    ],
)
def test_estimates_are_filtered_and_sorted(
    client: ApiClient, query: str, expected: list[Any]
) -> None:
    assert found(client, query) == expected


@pytest.mark.parametrize("value", ["many", "1e5", "nan", "٣"])
def test_a_filter_that_is_no_number_is_refused(client: ApiClient, value: str) -> None:
    answer = client.get(f"/api/v1/tasks/?estimate={value}")
    assert (answer.status_code, error_of(answer)["details"]["field"]) == (400, "estimate")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("filter=estimate>3", True),
        ("estimate=0", False),
        ("estimate=5", True),
        ("estimate=", False),
    ],
)
def test_a_watched_list_compares_estimates(alice: User, query: str, expected: bool) -> None:
    task = make_task(estimate=5)
    change = Change.objects.get(kind="task", object_id=task.pk)
    assert matches(change, f"mcp://backlog/tasks?{query}") is expected
