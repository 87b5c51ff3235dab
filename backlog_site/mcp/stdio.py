"""Serve the same server over stdin and stdout, in both eras, for one user."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from backlog_site.mcp.backchannel import Backchannel, connect
from backlog_site.mcp.bus import RESOURCE_LIST, Watcher, bus
from backlog_site.mcp.context import Caller, Request, bind_request
from backlog_site.mcp.legacy import ANNOUNCES
from backlog_site.mcp.server import low_level
from backlog_site.mcp.subscribing import notification_of
from backlog_site.serving.database_threads import in_thread
from resources_app.reading import watching
from resources_app.reading.watching import Position


class PipeWatches:
    """Hold the client's subscriptions and send notices down the pipe of its last request."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._session: ServerSession | None = None

    async def add(self, uri: str, position: Position) -> None:
        self._watcher.watch(uri, position)

    async def remove(self, uri: str) -> None:
        self._watcher.unwatch(uri)

    async def remember_pipe(self, ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult:
        """Remember the pipe, as a middleware.

        Clients of the newer era get notices through subscriptions/listen only.
        """
        result = await call_next(ctx)
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS and self._session is None:
            self._watcher.watch(RESOURCE_LIST, await in_thread(watching.end_of_feed))
            self._session = ctx.session
        return result

    async def forward(self) -> None:
        async for notice in self._watcher.notices():
            if self._session:
                await self._session.send_notification(notification_of(notice, {}))


async def serve(caller: Caller) -> None:
    backchannel = Backchannel(connect(), on_changes=bus.wake)
    with bus.attached(caller) as watcher:
        watches = PipeWatches(watcher)
        low_level.middleware.append(watches.remember_pipe)
        bind_request(Request(caller, watches=watches))
        async with (
            _beside(backchannel.run, bus.run, bus.check_credentials, watches.forward),
            stdio_server() as (read, write),
        ):
            await low_level.run(read, write, low_level.create_initialization_options(ANNOUNCES))


@asynccontextmanager
async def _beside(*jobs: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(job()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
