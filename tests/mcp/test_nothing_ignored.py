"""Test that input over MCP is honoured or rejected by name, in every version of the protocol."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from mcp import Client

from tests.mcp.clients import (
    ERAS,
    LEGACY_VERSIONS,
    META,
    MODERN,
    connected,
    modern,
    request,
    session,
    title,
)
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site
from tests.mcp.test_tools import call, refused

VERSIONS = (*LEGACY_VERSIONS, MODERN)


@contextmanager
def opened(site: Site, token: str, version: str) -> Iterator[httpx.Client]:
    with site.client(token) if version == MODERN else session(site, token, version) as http:
        yield http


def asked(
    site: Site, http: httpx.Client, protocol: str, method: str, **params: Any
) -> dict[str, Any]:
    is_modern, plain = protocol == MODERN, request(method, params)
    answer = modern(site, http, method, params) if is_modern else http.post(site.mcp, json=plain)
    message: dict[str, Any] = answer.json()
    return message


@pytest.mark.parametrize("version", VERSIONS)
def test_reading_takes_a_version_and_answers_that_one(
    site: Site, tokens: Tokens, version: str
) -> None:
    ref = site.elsewhere.create(values={"title": "one"})
    uri = f"mcp://backlog/tasks/{ref}/title"
    site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("two"))
    with opened(site, tokens.alice, version) as http:
        for number, text in ((1, "one"), (2, "two"), (None, "two"), ("1", "one")):
            read = asked(site, http, version, "resources/read", uri=uri, version=number)
            assert read["result"]["contents"][0]["text"] == text
        whole = asked(
            site, http, version, "resources/read", uri=f"mcp://backlog/tasks/{ref}", version=1
        )
        assert '"title": "one"' in whole["result"]["contents"][0]["text"]
        for wrong in (0, -1, 99, "x", 1.5, True, [1], {"a": 1}):
            assert "error" in asked(
                site, http, version, "resources/read", uri=uri, version=wrong
            ), wrong
        twice = asked(site, http, version, "resources/read", uri=f"{uri}@v1", version=2)
        assert twice["error"]["data"]["code"] == "invalid_uri"
        versionless = asked(
            site, http, version, "resources/read", uri="mcp://backlog/tasks", version=1
        )
        assert versionless["error"]["data"]["code"] == "invalid_uri"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", MODERN])
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {"uri": "mcp://backlog/tasks"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("tools/list", {}),
        ("prompts/list", {}),
        ("tools/call", {"name": "backlog_list", "arguments": {}}),
        ("prompts/get", {"name": "triage", "arguments": {}}),
        ("resources/schema", {"uri": "mcp://backlog/tasks/TASK-0001"}),
        ("resources/list_versions", {"uri": "mcp://backlog/tasks/TASK-0001"}),
        (
            "resources/write",
            {
                "uri": "mcp://backlog/tasks/TASK-0001",
                "operation": {"type": "restore", "version": 1},
            },
        ),
        ("resources/write_batch", {"operations": []}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "mcp://backlog/tasks/{id}"},
                "argument": {"name": "id", "value": "TASK"},
            },
        ),
    ],
)
def test_an_unknown_parameter_is_refused_by_name(
    site: Site, tokens: Tokens, version: str, method: str, params: dict[str, Any]
) -> None:
    with opened(site, tokens.alice, version) as http:
        error = asked(site, http, version, method, **params, bogus=1)["error"]
        assert (error["code"], error["data"]["code"], error["data"]["details"]["field"]) == (
            -32602,
            "validation_failed",
            "bogus",
        )


def test_an_unknown_parameter_of_a_subscription_is_refused(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Watched'})}"
    with session(site, tokens.alice) as http:
        for method in ("resources/subscribe", "resources/unsubscribe"):
            error = asked(site, http, "2025-11-25", method, uri=uri, version=1)["error"]
            assert error["data"]["details"]["field"] == "version"
    with site.client(tokens.alice) as http:
        body = request("subscriptions/listen", {"notifications": {}, "bogus": 1, "_meta": META})
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
        assert '"bogus"' in http.post(site.mcp, json=body, headers=headers).text


@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
@pytest.mark.parametrize(
    "method", ["tools/list", "prompts/list", "resources/templates/list", "resources/list"]
)
def test_a_cursor_that_was_not_given_out_is_refused(
    site: Site, tokens: Tokens, version: str, method: str
) -> None:
    with opened(site, tokens.alice, version) as http:
        error = asked(site, http, version, method, cursor="nowhere")["error"]
        assert (error["code"], error["data"]["details"]["field"]) == (-32602, "cursor")


@pytest.mark.parametrize("era", ERAS)
def test_null_clears_a_field_or_is_refused_by_its_name(
    site: Site, tokens: Tokens, era: str
) -> None:
    filled = {
        "description": "text",
        "priority": "high",
        "labels": ["a"],
        "assignee": "alice",
        "due_date": "2026-12-01",
        "evidence": ["e"],
        "blocked_reason": ["b"],
        "references": [{"url": "https://example.com", "title": "E"}],
    }
    cleared = dict.fromkeys(filled) | {"description": "", "priority": "none"}
    cleared |= {name: [] for name in ("labels", "evidence", "blocked_reason", "references")}

    async def scenario(client: Client) -> None:
        epic = (await call(client, "backlog_create", title="Epic", type="epic"))["id"]
        needed = (await call(client, "backlog_create", title="First"))["id"]
        links = {"epic_id": epic, "depends_on": [needed]}
        made = await call(client, "backlog_create", title="Filled", **filled, **links)
        for name, empty in (cleared | {"epic_id": None, "depends_on": []}).items():
            answer = await call(client, "backlog_update", id=made["id"], **{name: None})
            assert (
                answer["diff"][name] == {"before": made[name], "after": empty}
                or name == "description"
            ), name
        left = (await call(client, "backlog_get", id=made["id"]))["results"][0]["contents"]
        assert {name: left[name] for name in cleared} == cleared
        assert (left["epic_id"], left["depends_on"]) == (None, [])
        for name in ("title", "status"):
            error = await refused(
                client, "backlog_update", id=made["id"], priority="low", **{name: None}
            )
            assert (error["code"], error["details"]["field"]) == ("validation_failed", name)
        again = (await call(client, "backlog_get", id=made["id"]))["results"][0]["contents"]
        assert again["priority"] == "none", "nothing of a refused update is written"

    async def main() -> None:
        async with connected(site, tokens.alice, era) as client:
            await scenario(client)

    asyncio.run(main())


def test_an_update_without_a_field_is_refused(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Unchanged"})

    async def main() -> None:
        async with connected(site, tokens.alice, "auto") as client:
            error = await refused(client, "backlog_update", id=ref)
            assert (
                error["code"] == "validation_failed"
                and "due_date" in error["details"]["allowed_values"]
            )
            error = await refused(client, "backlog_update", id=ref, etag=None)
            assert error["code"] == "validation_failed"
            updated = await call(
                client, "backlog_update", id=ref, etag=None, parent_id=None, title="Changed"
            )
            assert list(updated["diff"]) == ["title"]

    asyncio.run(main())


def test_an_etag_holds_for_a_permanent_deletion_too(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Kept"})

    async def main() -> None:
        async with connected(site, tokens.carol, "auto") as client:
            error = await refused(client, "backlog_delete", id=ref, permanent=True, etag="1-x")
            assert error["code"] == "conflict"
            etag = (await call(client, "backlog_get", id=ref))["results"][0]["etag"]
            assert (await call(client, "backlog_delete", id=ref, permanent=True, etag=etag))[
                "deleted"
            ]

    asyncio.run(main())
