"""Measure sixteen concurrent clients on two web processes: goals L1 to L3.

Connections are spread evenly, as by a proxy.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bench.calls import Call, is_refusal
from bench.mcp import tool
from bench.measuring import Sample, Site
from bench.picks import Picks
from bench.rows import row_named, uri_of
from bench.servers import Server, running_server
from bench.sockets import connected

AGENTS = 16
SECONDS = 10.0
Source = Callable[[], Call]


@dataclass
class Load(Sample):
    failed: int = 0

    def figures(self, name: str, seconds: float) -> dict[str, Any]:
        """Return the figures. Only successful requests count."""
        return {
            f"load_{name}_per_s": round((len(self.walls) - self.failed) / seconds, 1),
            f"load_{name}_p95_ms": round(self.p95_ms, 1),
            f"load_{name}_failed": self.failed,
        }


def load_figures(site: Site, share: float) -> dict[str, Any]:
    refs = site.picks.refs(AGENTS)
    kinds: dict[str, list[Source]] = {
        "rest_list": [_list_some] * AGENTS,
        "mcp_get": [_getter(site.tasks, seed) for seed in range(AGENTS)],
        "write_apart": [_writer(refs[n % len(refs)]) for n in range(AGENTS)],
        "write_one": [_writer(refs[0])] * AGENTS,
    }
    figures: dict[str, Any] = {}
    with running_server(site.environment, site.filled.token) as second:
        for name, sources in kinds.items():
            figures |= _measure(name, [site.server, second], sources, SECONDS * share)
    return figures


def _list_some() -> Call:
    return Call("/api/v1/tasks/?limit=20")


def _getter(tasks: int, seed: int) -> Source:
    picks = Picks(tasks, seed)
    return lambda: row_named("mcp_get").call(picks)


def _writer(ref: str) -> Source:
    """Append a short line, so that the length of the task's text barely changes."""
    operation = {"type": "append", "content": "\n- x"}
    return lambda: tool("write_resource", uri=uri_of(ref, "description"), operation=operation)


def _measure(
    name: str, servers: Sequence[Server], sources: Sequence[Source], seconds: float
) -> dict[str, Any]:
    """Measure after one uncounted round from every client, which covers first-request costs of a
    process.
    """
    load = Load()
    asyncio.run(_drive(servers, sources, 0, Load()))
    began = time.perf_counter()
    asyncio.run(_drive(servers, sources, began + seconds, load))
    return load.figures(name, time.perf_counter() - began)


async def _drive(
    servers: Sequence[Server], sources: Sequence[Source], until: float, load: Load
) -> None:
    await asyncio.gather(
        *(_work(servers[n % len(servers)], source, until, load) for n, source in enumerate(sources))
    )


async def _work(server: Server, source: Source, until: float, load: Load) -> None:
    asked = 0
    async with connected(server.url, server.token) as connection:
        while not asked or time.perf_counter() < until:
            call, asked = source(), asked + 1
            began = time.perf_counter()
            status, body = await connection.ask(call)
            load.walls.append(time.perf_counter() - began)
            load.failed += not _succeeded(call, status, body)


def _succeeded(call: Call, status: int, body: bytes) -> bool:
    return 200 <= status < 300 and not (call.path == "/mcp" and is_refusal(json.loads(body)))
