"""Test contract section 5, adr-0001 section 5: the query language, by URI and by REST, which share
one parser.
"""

from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User

from resources_app.writing import write_path
from tests.api.clients import ApiClient
from tests.contract.calling import contents, read, refused
from tests.factories import as_actor

TASKS: list[dict[str, Any]] = [
    {
        "title": "Sign in, auth first",
        "epic_id": "EPIC-0002",
        "priority": "urgent",
        "labels": ["auth", "web"],
    },
    {
        "title": 'Say "no" & mean it',
        "status": "in_progress",
        "assignee": "alice",
        "due_date": "2026-12-01",
    },
    {
        "title": "Authentication by key",
        "epic_id": "EPIC-0002",
        "status": "done",
        "labels": ["auth"],
    },
    {"title": "Задача", "depends_on": ["TASK-0001"], "assignee": "bob", "priority": "low"},
    {
        "title": "Blocked",
        "status": "blocked",
        "depends_on": ["TASK-0003"],
        "due_date": "2026-11-01",
    },
]
KNOWN = [
    "status",
    "epic_id",
    "parent_id",
    "assignee",
    "label",
    "priority",
    "id",
    "title",
    "description",
]


@pytest.fixture
def team(alice: User, bob: User, client: ApiClient) -> ApiClient:
    write_path.create_item(as_actor(alice), "epic", {"title": "Auth"}, number=2)
    for values in TASKS:
        write_path.create_item(as_actor(alice), "task", values)
    return client


def escaped(query: str) -> str:
    return "&".join(
        f"{name}={quote(value)}"
        for name, _, value in (pair.partition("=") for pair in query.split("&"))
    )


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("status=open", [1, 4]),
        ("status=open&status=in_progress", [1, 2, 4]),
        ("epic_id=EPIC-0002", [1, 3]),
        ("parent_id=EPIC-0002", [1, 3]),
        ("epic_id=EPIC-0002&status=open", [1]),
        ("assignee=alice", [2]),
        ("assignee=alice&assignee=bob", [2, 4]),
        ("assignee=", [1, 3, 5]),
        ("label=auth", [1, 3]),
        ("label=web&label=none", [1]),
        ("priority=urgent&priority=low", [1, 4]),
        ("ready=true", [1]),
        ("ready=false", [2, 3, 4, 5]),
        ("search=authentication", [3]),
        ("search=задача", [4]),
        ("limit=50&offset=0", [1, 2, 3, 4, 5]),
        ("filter=status:open,epic_id:EPIC-0002", [1]),
        ("filter=created_at>2026-01-01", [1, 2, 3, 4, 5]),
        ("filter=created_at<2026-01-01", []),
        ("filter=created_at>=2026-01-01T00:00:00Z,created_at<=9000-01-01", [1, 2, 3, 4, 5]),
        ('filter=title~"auth"', [1, 3]),
        ('filter=title~"in, auth"', [1]),
        ("filter=title~auth", [1, 3]),
        ('filter=title~"say \\"no\\""', [2]),
        ('filter=title:"Blocked"', [5]),
        ("filter=status!=open", [2, 3, 5]),
        ("filter=status!=open,status!=done", [2, 5]),
        ("filter=label!=auth", [2, 4, 5]),
        ("filter=assignee!=alice", [1, 3, 4, 5]),
        ("filter=priority>=low", [1, 4]),
        ("filter=priority>low", [1]),
        ("filter=due_date<=2026-11-01", [5]),
        ("filter=due_date>2026-11-01,due_date<2027-01-01", [2]),
        ("filter=due_date:2026-12-01", [2]),
        ("filter=id:TASK-0002", [2]),
        ("filter= status : open , epic_id : EPIC-0002 ", [1]),
        ("filter=status:open&filter=epic_id:EPIC-0002", [1]),
    ],
)
def test_every_form_of_a_filter_by_uri_and_by_rest(
    team: ApiClient, query: str, numbers: list[int]
) -> None:
    listed = team.get(f"/api/v1/tasks/?{escaped(query)}").json()
    assert sorted(row["id"] for row in listed["results"]) == [
        f"TASK-{number:04d}" for number in numbers
    ]
    assert (listed["total"], listed["next_cursor"]) == (len(numbers), None)
    assert contents(team, f"mcp://backlog/tasks?{escaped(query)}") == listed


def test_the_examples_of_the_specs_need_no_escapes(team: ApiClient) -> None:
    for query in (
        "filter=status:open,epic_id:EPIC-0002",
        "filter=created_at>2026-01-01",
        'filter=title~"auth"',
    ):
        assert contents(team, f"mcp://backlog/tasks?{query}")["total"] >= 1


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("sort=title", [3, 5, 2, 1, 4]),
        ("sort=id&order=desc", [5, 4, 3, 2, 1]),
        ("sort=priority&order=desc", [1, 4, 5, 3, 2]),
        ("sort=due_date", [5, 2, 1, 3, 4]),
        ("sort=updated_at&order=desc", [5, 4, 3, 2, 1]),
        ("sort=created_at&order=asc", [1, 2, 3, 4, 5]),
        ("", [5, 4, 3, 2, 1]),
    ],
)
def test_an_order_holds_over_pages_by_cursor_and_by_offset(
    team: ApiClient, query: str, numbers: list[int]
) -> None:
    expected = [f"TASK-{number:04d}" for number in numbers]
    assert [row["id"] for row in team.get(f"/api/v1/tasks/?{query}").json()["results"]] == expected
    by_cursor, cursor = [], ""
    for _ in numbers:
        page = team.get(f"/api/v1/tasks/?{query}&limit=2{cursor}").json()
        assert page["total"] == len(numbers)
        by_cursor += page["results"]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    by_offset = [
        team.get(f"/api/v1/tasks/?{query}&limit=1&offset={at}").json()["results"][0]
        for at in range(5)
    ]
    assert [row["id"] for row in by_cursor] == [row["id"] for row in by_offset] == expected


@pytest.mark.parametrize(
    ("query", "counts"),
    [
        ("aggregate=count", {"count": 5}),
        (
            "aggregate=count&group_by=status",
            {"open": 2, "in_progress": 1, "blocked": 1, "done": 1, "cancelled": 0},
        ),
        (
            "aggregate=count&group_by=priority",
            {"none": 3, "low": 1, "medium": 0, "high": 0, "urgent": 1},
        ),
        ("aggregate=count&group_by=epic_id", {"": 3, "EPIC-0002": 2}),
        ("aggregate=count&group_by=assignee", {"": 3, "alice": 1, "bob": 1}),
        ("aggregate=count&group_by=label", {"auth": 2, "web": 1}),
        (
            "aggregate=count&group_by=status&epic_id=EPIC-0002",
            {"open": 1, "in_progress": 0, "blocked": 0, "done": 1, "cancelled": 0},
        ),
    ],
)
def test_counts_by_group(team: ApiClient, query: str, counts: dict[str, int]) -> None:
    assert contents(team, f"mcp://backlog/tasks?{query}") == counts
    assert team.get(f"/api/v1/tasks/?{query}").json() == counts


@pytest.mark.parametrize(
    ("query", "field", "allowed"),
    [
        ("status=nope", "status", ["open", "in_progress", "blocked", "done", "cancelled"]),
        ("priority=p1", "priority", ["none", "low", "medium", "high", "urgent"]),
        ("ready=maybe", "ready", ["true", "false"]),
        ("order=up", "order", ["asc", "desc"]),
        (
            "sort=colour",
            "sort",
            ["id", "title", "status", "priority", "due_date", "created_at", "updated_at"],
        ),
        ("aggregate=sum", "aggregate", ["count"]),
        (
            "aggregate=count&group_by=title",
            "group_by",
            ["status", "priority", "assignee", "label", "epic_id"],
        ),
        ("filter=colour:red", "colour", KNOWN),
        ("filter=status=open", "filter", [":", "!=", ">=", "<=", ">", "<", "~"]),
        ("filter=status>open", "status", [":", "!="]),
        ("filter=title>m", "title", [":", "!=", "~"]),
        ("colour=red", "colour", KNOWN),
        ("labels=auth", "labels", KNOWN),
    ],
)
def test_what_is_unknown_is_answered_with_what_is_known(
    team: ApiClient, query: str, field: str, allowed: list[str]
) -> None:
    for response in (
        team.get(f"/api/v1/tasks/?{escaped(query)}"),
        read(team, f"mcp://backlog/tasks?{escaped(query)}"),
    ):
        details = refused(response, "validation_failed", 400)
        assert (details["field"], details["allowed_values"][: len(allowed)]) == (field, allowed)
        assert details["value"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=x", "limit"),
        ("limit=1&limit=2", "limit"),
        ("sort=title&sort=id", "sort"),
        ("offset=-1", "offset"),
        ("cursor=nonsense", "cursor"),
        ("cursor=nonsense&offset=1", "offset"),
        ("group_by=status", "aggregate"),
        ("epic_id=TASK-0001", "epic_id"),
        ("filter=", "filter"),
        ("filter=status", "filter"),
        ("filter=status:open,", "filter"),
        ("filter=,", "filter"),
        ('filter=title~"open', "filter"),
        ("filter=created_at>yesterday", "created_at"),
        ("filter=status:", "status"),
    ],
)
def test_a_bad_query_names_its_fault(team: ApiClient, query: str, field: str) -> None:
    assert (
        refused(team.get(f"/api/v1/tasks/?{escaped(query)}"), "validation_failed", 400)["field"]
        == field
    )


def test_a_cursor_belongs_to_its_order(team: ApiClient) -> None:
    cursor = team.get("/api/v1/tasks/?sort=title&limit=1").json()["next_cursor"]
    refused(team.get(f"/api/v1/tasks/?sort=id&cursor={cursor}"), "validation_failed", 400)


@pytest.mark.parametrize("limit", [1, 200])
def test_a_page_has_1_to_200_entries_and_50_without_a_limit(
    team: ApiClient, alice: User, limit: int
) -> None:
    for number in range(60):
        write_path.create_item(as_actor(alice), "task", {"title": f"More {number}"})
    assert len(team.get("/api/v1/tasks/").json()["results"]) == 50
    page = team.get(f"/api/v1/tasks/?limit={limit}").json()
    assert (len(page["results"]), page["total"]) == (min(limit, 65), 65)


def test_the_other_collections_take_the_same_language(team: ApiClient) -> None:
    assert team.get("/api/v1/epics/?filter=title~auth&sort=title").json()["total"] == 1
    assert team.get("/api/v1/epics/EPIC-0002/tasks/?status=done").json()["total"] == 1
    assert contents(team, "mcp://backlog/epics/EPIC-0002/tasks?aggregate=count") == {"count": 2}
    refused(team.get("/api/v1/epics/?ready=true"), "validation_failed", 400)
    assert contents(team, "mcp://backlog/archive?status=open")["total"] == 0
    refused(read(team, "mcp://backlog/archive?type=folder"), "validation_failed", 400)
