"""Test that `backlog_search` and `/api/v1/search/` give the same answer over the wire."""

import asyncio
from typing import Any

import pytest

from tests.mcp.clients import connected
from tests.mcp.conftest import Tokens, site, tokens  # noqa: F401
from tests.mcp.site import Site

THINGS = (
    {
        "title": "Authentication of users",
        "description": "Login with a **token**, see `getUserById`",
        "status": "blocked",
    },
    {
        "title": "Задача на завтра",
        "description": "数据库 is slow",
        "evidence": ["login seen"],
        "blocked_reason": ["login"],
    },
    {"title": "Nothing but a title"},
)
ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("authenticat", {}),
    ("authenticaton", {"include_scores": True}),
    ("TASK-2", {}),
    ("Задача", {"include_content": True}),
    ("数据库", {}),
    ("getUserById", {}),
    ("user by id", {}),
    ("login", {"limit": 1}),
    ("login", {"sort": "recent"}),
    ("login", {"types": ["task"], "status": ["blocked"]}),
    ("login", {"types": ["epic", "resource"]}),
    ("blocked tasks about login", {}),
    ("  ", {}),
    ("", {}),
    ("nowhere to be found", {}),
)


@pytest.fixture(scope="module", autouse=True)
def things(site: Site, tokens: Tokens) -> None:
    for values in THINGS:
        site.elsewhere.create(values=values, by="alice")
    site.elsewhere.create(kind="epic", values={"title": "Login epic"}, by="alice")
    with site.client(tokens.alice) as http:
        guide = {"path": "docs/guide.md", "content": "# Guide\n\nHow login works."}
        http.post(f"{site.url}/api/v1/resources/", json=guide).raise_for_status()


def by_mcp(site: Site, token: str) -> list[Any]:
    async def ask() -> list[Any]:
        async with connected(site, token, "auto") as client:
            answers = [
                await client.call_tool("backlog_search", {"query": query, **more})
                for query, more in ASKED
            ]
            return [answer.structured_content for answer in answers]

    return asyncio.run(ask())


def by_rest(site: Site, token: str) -> list[Any]:
    def ask(query: str, more: dict[str, Any]) -> Any:
        shown = {
            name: ",".join(value) if isinstance(value, list) else value
            for name, value in more.items()
        }
        return (
            http.get(f"{site.url}/api/v1/search/", params={"q": query, **shown})
            .raise_for_status()
            .json()
        )

    with site.client(token) as http:
        return [ask(query, more) for query, more in ASKED]


def test_both_doors_give_the_same_answers(site: Site, tokens: Tokens) -> None:
    answers = by_rest(site, tokens.alice)
    assert by_mcp(site, tokens.alice) == answers
    found = [[result["id"] for result in answer["results"]] for answer in answers]
    assert found[:7] == [
        ["TASK-0001"],
        ["TASK-0001"],
        ["TASK-0002"],
        *[["TASK-0002"]] * 2,
        *[["TASK-0001"]] * 2,
    ]
    assert [len(results) for results in found[7:]] == [1, 4, 1, 2, 1, 0, 0, 0]
    assert answers[7]["total"] == 4
    assert all(result["snippet"]["text"] for answer in answers for result in answer["results"])
