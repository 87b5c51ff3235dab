"""Test that every call of /mcp and REST logs one line: what, outcome, duration, user; never its
content.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.surroundings import eventually
from tests.mcp.clients import initialize, modern, request
from tests.mcp.site import Site, running_site

SECRET = "do-not-log-these-words"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Run a separate site: the other tests' site logs almost nothing."""
    with running_site(os.environ["REDIS_URL"], BACKLOG_LOG_LEVEL="INFO") as site:
        yield site


@pytest.fixture(scope="module")
def token(site: Site) -> str:
    return str(site.elsewhere.token(name="alice", roles=["contributor"]))


def lines_about(site: Site, wanted: str, count: int = 1) -> list[dict[str, Any]]:
    """Return the lines.

    A line is written when its call has ended, which its client may notice earlier.
    """
    assert eventually(lambda: len(_written(site, wanted)) >= count)
    return _written(site, wanted)


def _written(site: Site, wanted: str) -> list[dict[str, Any]]:
    *whole, _ = site.log.read_text().split("\n")
    lines = [json.loads(line) for line in whole if wanted in line and line.startswith("{")]
    return [line for line in lines if line["event"] == "request_finished"]


def test_a_tool_call_and_a_read_leave_one_line_each_with_tool_and_address(
    site: Site, token: str
) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Logged'}, by='alice')}/description"
    operation = {"type": "append", "content": SECRET}
    with site.client(token) as http:
        modern(
            site,
            http,
            "tools/call",
            {"name": "write_resource", "arguments": {"uri": uri, "operation": operation}},
        )
        modern(site, http, "resources/read", {"uri": uri})
    called, read = lines_about(site, uri, count=2)
    assert (called["rpc_method"], called["name"], called["uri"]) == (
        "tools/call",
        "write_resource",
        uri,
    )
    assert (read["rpc_method"], read["uri"]) == ("resources/read", uri)
    for line in (called, read):
        assert (line["method"], line["path"], line["status"]) == ("POST", "/mcp", 200)
        assert line["duration_ms"] > 0 and line["user_id"] and line["request_id"]
    assert called["request_id"] != read["request_id"]
    assert SECRET not in site.log.read_text() and token not in site.log.read_text()


def test_a_call_of_the_handshake_era_is_named_too(site: Site, token: str) -> None:
    with site.client(token) as http:
        opened = initialize(site, http)
        headers = {
            "Mcp-Session-Id": opened.headers["mcp-session-id"],
            "MCP-Protocol-Version": "2025-11-25",
        }
        http.post(site.mcp, json=request("prompts/get", {"name": "triage-logged"}), headers=headers)
    [line] = lines_about(site, "triage-logged")
    assert (line["rpc_method"], line["name"], line["path"]) == (
        "prompts/get",
        "triage-logged",
        "/mcp",
    )


def test_a_rest_call_leaves_one_line_with_its_duration(site: Site, token: str) -> None:
    with site.client(token) as http:
        http.get(f"{site.url}/api/v1/tasks/TASK-987654/")
        http.post(f"{site.url}/api/v1/tasks/", content=b"x" * 5_000_000)
        anonymous = http.get(
            f"{site.url}/api/v1/epics/EPIC-987655/", headers={"Authorization": "Bearer bl_nobody"}
        )
    [missing] = lines_about(site, "TASK-987654")
    assert (missing["method"], missing["path"], missing["status"]) == (
        "GET",
        "/api/v1/tasks/TASK-987654/",
        404,
    )
    assert missing["duration_ms"] > 0 and missing["user_id"] and missing["request_id"]
    [refused] = lines_about(site, "EPIC-987655")
    assert (refused["status"], anonymous.status_code) == (401, 401)
