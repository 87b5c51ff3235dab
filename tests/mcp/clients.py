"""Wrap the official client in both eras, with small functions for what goes beyond it."""

import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation

from tests.mcp.site import ROOT, Site

MODERN = "2026-07-28"
PATIENCE = 20
LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
# Modes of the official client: the handshake, or discovery of what the server serves.
ERAS = ("legacy", "auto")
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "plain", "version": "1"},
}


@asynccontextmanager
async def connected(site: Site, token: str, mode: str, **options: Any) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
    ) as http:
        transport = streamable_http_client(site.mcp, http_client=http)
        info = Implementation(name="agent-of-the-test", version="1")
        async with Client(transport, mode=mode, client_info=info, **options) as client:
            yield client


def pipe(site: Site, token: str) -> StdioServerParameters:
    """Return parameters for `Client(pipe(site, token))`: the same server over stdin and stdout."""
    environment = site.environment | {"BACKLOG_TOKEN": token, "BACKLOG_LOG_LEVEL": "DEBUG"}
    return StdioServerParameters(
        command=sys.executable, args=["manage.py", "mcp_stdio"], env=environment, cwd=ROOT
    )


def request(
    method: str, params: dict[str, Any] | None = None, request_id: Any = 1
) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def initialize(site: Site, http: httpx.Client, version: str = "2025-11-25") -> httpx.Response:
    info = {"name": "plain", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {"elicitation": {}}, "clientInfo": info}
    return http.post(site.mcp, json=request("initialize", params))


@contextmanager
def session(site: Site, token: str, version: str = "2025-11-25") -> Iterator[httpx.Client]:
    """Yield a plain client that has a session."""
    with site.client(token) as http:
        opened = initialize(site, http, version)
        assert opened.status_code == 200, opened.text
        http.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        http.headers["MCP-Protocol-Version"] = opened.json()["result"]["protocolVersion"]
        yield http


def call(site: Site, http: httpx.Client, tool: str, **arguments: Any) -> Any:
    answer = http.post(site.mcp, json=request("tools/call", {"name": tool, "arguments": arguments}))
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["structuredContent"]


def modern(
    site: Site, http: httpx.Client, method: str, params: dict[str, Any] | None = None
) -> httpx.Response:
    body = request(method, {**(params or {}), "_meta": META})
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name := (params or {}).get("name") or (params or {}).get("uri"):
        headers["Mcp-Name"] = name
    return http.post(site.mcp, json=body, headers=headers)


class Events:
    """Read the events of an open stream, one after the other."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        self.last_id: str | None = None

    def next(self) -> dict[str, Any]:
        """Return the next message.

        Skips events without one (pings, bare ids). Pings keep a stream from timing out.
        """
        deadline = time.monotonic() + PATIENCE
        for line in self._lines:
            assert time.monotonic() < deadline, "nothing but pings"
            if line.startswith("id: "):
                self.last_id = line.removeprefix("id: ")
            if line.startswith("data: ") and line != "data: ":
                return json.loads(line.removeprefix("data: "))
        raise EOFError

    def next_update(self) -> dict[str, Any]:
        while (message := self.next())["method"] != "notifications/resources/updated":
            pass
        return message["params"]


@contextmanager
def get_stream(site: Site, http: httpx.Client, **headers: str) -> Iterator[Events]:
    with http.stream(
        "GET", site.mcp, headers={"Accept": "text/event-stream", **headers}
    ) as response:
        assert response.status_code == 200, response.read()
        yield Events(response)


@contextmanager
def listening(site: Site, http: httpx.Client, *uris: str, **wanted: bool) -> Iterator[Events]:
    notifications = {"resourceSubscriptions": list(uris), **wanted}
    body = request(
        "subscriptions/listen", {"notifications": notifications, "_meta": META}, "listen-1"
    )
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    with http.stream("POST", site.mcp, json=body, headers=headers) as response:
        assert response.status_code == 200, response.read()
        events = Events(response)
        assert events.next()["method"] == "notifications/subscriptions/acknowledged"
        yield events


def wait_until_refused(site: Site, http: httpx.Client) -> None:
    """Wait until the token is rejected. A process caches its look-up for a moment."""
    deadline = time.monotonic() + PATIENCE
    while http.post(site.mcp, json=request("ping")).status_code != 401:
        assert time.monotonic() < deadline, "the token still works"
        time.sleep(0.1)


def subscribe(site: Site, http: httpx.Client, uri: str) -> httpx.Response:
    return http.post(site.mcp, json=request("resources/subscribe", {"uri": uri}))


def title(value: str) -> dict[str, Any]:
    return {"type": "set", "field": "title", "value": value}
