"""Test random JSON-RPC against the running site in both eras: one answer each, no internal error,
and it stays up.
"""

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from backlog_site.mcp.server import toolsets
from tests.fuzz.cases import fuzz, in_time
from tests.fuzz.test_addresses_and_operations import address, anything, operation, value
from tests.mcp.clients import META, MODERN, request, session
from tests.mcp.conftest import Tokens, site, tokens  # noqa: F401
from tests.mcp.site import Site

INTERNAL_ERROR = -32603
METHODS = [
    *(
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/read",
        "resources/templates/list",
    ),
    *(
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
    ),
    *(
        "resources/write",
        "resources/write_batch",
        "resources/schema",
        "resources/list_versions",
        "logging/setLevel",
    ),
    *(
        "initialize",
        "server/discover",
        "notifications/cancelled",
        "notifications/initialized",
        "no/such",
    ),
]
TOOLS = {
    name: list(tool.parameters["properties"])
    for name, tool in toolsets._tool_manager._tools.items()
}
word = st.one_of(
    value,
    address,
    st.sampled_from(["TASK-0001", "EPIC-0001", "task", "open", "mcp://backlog/tasks"]),
)
parameters = st.dictionaries(
    st.sampled_from(
        [
            "uri",
            "name",
            "arguments",
            "cursor",
            "ref",
            "argument",
            "operation",
            "operations",
            "limit",
            "_meta",
        ]
    ),
    st.one_of(word, operation),
    max_size=4,
)
called = st.sampled_from(list(TOOLS)).flatmap(
    lambda name: st.fixed_dictionaries(
        {
            "name": st.just(name),
            "arguments": st.dictionaries(
                st.sampled_from([*TOOLS[name], "x"]), st.one_of(word, operation), max_size=5
            ),
        }
    )
)
message = st.one_of(
    st.builds(lambda params: request("tools/call", params), called),
    st.builds(request, st.sampled_from(METHODS), parameters),
    st.builds(
        lambda method, params, number: {
            "jsonrpc": "2.0",
            "method": method,
            "params": params,
            "id": number,
        },
        st.one_of(st.sampled_from(METHODS), word),
        st.one_of(parameters, value),
        st.one_of(st.integers(), anything, value),
    ),
    st.lists(st.builds(request, st.sampled_from(METHODS), parameters), max_size=3),
    value,
)


@pytest.fixture(scope="module")
def open_session(site: Site, tokens: Tokens) -> Any:
    with session(site, tokens.alice) as http:
        site.elsewhere.create(values={"title": "First", "evidence": ["e"]}, by="alice")
        yield http


def sendable(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=True).encode()


def check(ask: Callable[[], httpx.Response]) -> None:
    answer = in_time(ask, time.monotonic)
    assert answer.status_code < 500, answer.text
    if answer.content and "json" in answer.headers["content-type"]:
        answers = answer.json() if isinstance(answer.json(), list) else [answer.json()]
        for one in answers:
            error = one.get("error") if isinstance(one, dict) else None
            assert not isinstance(error, dict) or error.get("code") != INTERNAL_ERROR, answer.text
    assert not any(
        leak in answer.text for leak in ("Traceback", "site-packages", "Error executing tool")
    )


@fuzz(0.15)
@given(body=message)
def test_any_message_of_the_handshake_era_is_answered(
    site: Site,
    open_session: Any,
    body: Any,
) -> None:
    check(lambda: open_session.post(site.mcp, content=sendable(body), timeout=60))


@fuzz(0.05)
@given(params=st.one_of(called, parameters), method=st.sampled_from([*METHODS, "tools/call"]))
def test_any_request_of_the_newer_era_is_answered(
    site: Site,
    open_session: Any,
    params: dict[str, Any],
    method: str,
) -> None:
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    name = params.get("name") or params.get("uri")
    if (
        isinstance(name, str)
        and name.isascii()
        and name.isprintable()
        and name
        and name == name.strip()
    ):
        headers["Mcp-Name"] = name
    body = request(method, {**params, "_meta": META})
    check(lambda: open_session.post(site.mcp, content=sendable(body), headers=headers, timeout=60))


@fuzz(0.05)
@given(
    body=st.one_of(
        st.binary(max_size=200), st.text().map(lambda text: text.encode("utf-8", "replace"))
    )
)
def test_any_bytes_are_answered(site: Site, open_session: Any, body: bytes) -> None:
    check(lambda: open_session.post(site.mcp, content=body, timeout=60))


def test_it_is_still_there_afterwards(site: Site, open_session: Any) -> None:
    assert open_session.post(site.mcp, json=request("ping")).json()["result"] == {}
    assert "Traceback" not in site.log.read_text(errors="replace")
