"""Test 300 subscribers on two processes: each receives each change once, and calls are not
slowed.
"""

import asyncio
import json
from collections import Counter

import httpx

from tests.mcp.clients import META, MODERN, PATIENCE, initialize, request, subscribe, title
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

STREAMS = 150
CHANGES = 5
OPENING_AT_ONCE = 30


async def listen(
    site: Site, http: httpx.AsyncClient, uri: str, heard: Counter, ready: asyncio.Semaphore
) -> None:
    body = request(
        "subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}, "_meta": META}
    )
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    async with http.stream("POST", site.mcp, json=body, headers=headers) as response:
        await count(response, heard, ready)


async def follow(
    site: Site, http: httpx.AsyncClient, session_id: str, heard: Counter, ready: asyncio.Semaphore
) -> None:
    headers = {"Mcp-Session-Id": session_id, "Accept": "text/event-stream"}
    async with http.stream("GET", site.mcp, headers=headers) as response:
        await count(response, heard, ready)


async def count(response: httpx.Response, heard: Counter, ready: asyncio.Semaphore) -> None:
    lines = response.aiter_lines()
    first = await anext(lines)
    ready.release()
    assert response.status_code == 200, first
    async for line in lines:
        if '"notifications/resources/updated"' in line:
            heard[
                json.loads(line.removeprefix("data: "))["params"]["_meta"]["change"]["version"]
            ] += 1


def batched(streams: list, size: int) -> list[list]:
    return [streams[start : start + size] for start in range(0, len(streams), size)]


def open_sessions(site: Site, token: str, uri: str) -> list[str]:
    with site.client(token) as http:
        opened = [initialize(site, http).headers["mcp-session-id"] for _ in range(STREAMS)]
        for session_id in opened:
            http.headers["Mcp-Session-Id"] = session_id
            assert subscribe(site, http, uri).status_code == 200
    return opened


def test_each_of_300_subscribers_hears_each_change_once_while_calls_go_on(
    site: Site, tokens: Tokens
) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Watched by many'})}"
    sessions = open_sessions(site, tokens.alice, uri)
    counters = [Counter() for _ in range(2 * STREAMS)]
    versions = list(range(2, 2 + CHANGES))

    async def scenario() -> None:
        headers = {
            "Authorization": f"Bearer {tokens.alice}",
            "Accept": "application/json, text/event-stream",
        }
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(
            headers=headers, timeout=60, limits=limits, trust_env=False
        ) as http:
            ready = asyncio.Semaphore(0)
            opening = [listen(site, http, uri, heard, ready) for heard in counters[:STREAMS]] + [
                follow(site, http, session_id, heard, ready)
                for session_id, heard in zip(sessions, counters[STREAMS:], strict=True)
            ]
            streams = []
            for some in batched(opening, OPENING_AT_ONCE):
                streams += [asyncio.ensure_future(stream) for stream in some]
                for _ in some:
                    await asyncio.wait_for(ready.acquire(), 60)
            assert [stream.exception() for stream in streams if stream.done()] == []
            for version in versions:
                await asyncio.to_thread(
                    site.elsewhere.write, uri=uri, operation=title(f"v{version}")
                )
                assert (await whoami(site, http))["user"] == "alice"
            async with asyncio.timeout(PATIENCE):
                while sum(map(Counter.total, counters)) < 2 * STREAMS * CHANGES:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(2.5)  # longer than the poll that would deliver a duplicate
            for stream in streams:
                stream.cancel()

    asyncio.run(scenario())
    assert all(heard == Counter(versions) for heard in counters)


async def whoami(site: Site, http: httpx.AsyncClient) -> dict:
    headers = {
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": "fixture_whoami",
    }
    body = request("tools/call", {"name": "fixture_whoami", "arguments": {}, "_meta": META})
    return (await http.post(site.mcp, json=body, headers=headers)).json()["result"][
        "structuredContent"
    ]
