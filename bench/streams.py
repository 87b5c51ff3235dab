"""Measure five hundred listeners of one task with one write a second: goal L4.

Then their token is revoked.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from bench.calls import BenchFailed
from bench.mcp import mcp, tool
from bench.measuring import Sample, Site, at_least_two
from bench.rows import append_to, uri_of
from bench.servers import manage
from bench.sockets import connected

STREAMS = 500
WRITES = 20
PATIENCE = 60.0
OPENED_AT_ONCE = 20
TOKEN_NAME = "listeners"


@dataclass
class Stream:
    is_open: bool = False
    heard: list[float] = field(default_factory=list)
    # In wall-clock time, which the revoking process shares.
    closed_at: float = 0.0


def listen_figures(site: Site, share: float) -> dict[str, Any]:
    named = ("alice", "--name", TOKEN_NAME, "--scope", "read")
    secret = manage(site.environment, "create_token", *named).strip()
    return asyncio.run(
        _measure(site, secret, at_least_two(STREAMS * share), at_least_two(WRITES * share))
    )


async def _measure(site: Site, secret: str, count: int, writes: int) -> dict[str, Any]:
    ref, streams, gate = (
        site.picks.ref(),
        [Stream() for _ in range(count)],
        asyncio.Semaphore(OPENED_AT_ONCE),
    )
    before = site.server.rss_mb()
    tasks = [asyncio.create_task(_listen(site, secret, ref, stream, gate)) for stream in streams]
    await _until(lambda: all(stream.is_open for stream in streams), tasks)
    opened = site.server.rss_mb()
    notices = await _write(site, ref, streams, writes, tasks)
    grown = site.server.rss_mb() - opened
    revoked_at = float(
        await asyncio.to_thread(manage, site.environment, "bench_revoke", TOKEN_NAME)
    )
    await _until(lambda: all(stream.closed_at for stream in streams), tasks)
    return {
        "load_listen_streams": count,
        "load_listen_p95_ms": round(notices.p95_ms, 1),
        "load_listen_rss_growth_mb": round(grown, 1),
        "load_listen_rss_streams_mb": round(opened - before, 1),
        "load_listen_closed_s": round(max(stream.closed_at for stream in streams) - revoked_at, 1),
    }


async def _listen(
    site: Site, secret: str, ref: str, stream: Stream, gate: asyncio.Semaphore
) -> None:
    call = mcp("subscriptions/listen", notifications={"resourceSubscriptions": [uri_of(ref)]})
    async with connected(site.server.url, secret) as connection:
        async with gate:
            status, _ = await connection.begin(call)
        if status != httpx.codes.OK:
            raise BenchFailed(f"Listening was answered with {status}.")
        async for line in connection.lines():
            if b"resources/updated" in line:
                stream.heard.append(time.perf_counter())
            stream.is_open |= b"subscriptions/acknowledged" in line
    stream.closed_at = time.time()


async def _write(
    site: Site, ref: str, streams: list[Stream], writes: int, tasks: list[asyncio.Task[None]]
) -> Sample:
    """Measure from sending each write until every stream has received it."""
    sample = Sample()
    async with connected(site.server.url, site.server.token) as connection:
        for number in range(1, writes + 1):
            began = time.perf_counter()
            await connection.ask(tool("write_resource", **append_to(ref)))
            await _until(
                lambda number=number: all(len(stream.heard) >= number for stream in streams), tasks
            )
            sample.walls += [stream.heard[number - 1] - began for stream in streams]
            await asyncio.sleep(max(0.0, began + 1 - time.perf_counter()))
    return sample


async def _until(is_so: Callable[[], bool], tasks: list[asyncio.Task[None]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        for task in tasks:
            if task.done():
                task.result()
        if time.monotonic() > deadline:
            raise BenchFailed("The listeners were not served in time.")
        await asyncio.sleep(0.005)
