"""Build requests of the newest MCP protocol, which are independent, as plain HTTP; and read
notifications.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from bench.calls import BenchFailed, Call

VERSION = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
_ACCEPTED = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": VERSION}


def mcp(method: str, **params: Any) -> Call:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    name = params.get("name") or params.get("uri")
    headers = _ACCEPTED | {"Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
    return Call("/mcp", body, headers=headers)


def tool(name: str, **arguments: Any) -> Call:
    return mcp("tools/call", name=name, arguments=arguments)


@contextmanager
def listening(client: httpx.Client, uri: str) -> Iterator[Iterator[str]]:
    """Yield the methods of notifications about one resource, as they arrive."""
    call = mcp("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
    with client.stream(call.verb, call.path, json=call.body, headers=call.headers) as answer:
        if not answer.is_success:
            raise BenchFailed(
                f"Listening was answered with {answer.status_code}: {answer.read()!r}"
            )
        methods = _methods(answer)
        next(methods)  # the acknowledgement: from here on nothing is missed
        yield methods


def _methods(answer: httpx.Response) -> Iterator[str]:
    for line in answer.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: ")).get("method", "")
