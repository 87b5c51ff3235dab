"""Run Django under ASGI with one thread switch per request. docs/decisions/0012-serving-layout.md
gives the reasons.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import IO, Any
from weakref import WeakKeyDictionary

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import connection
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from backlog_site.serving.allocator import LARGE_EXCHANGE_BYTES
from backlog_site.serving.database_threads import DatabaseThreads

# More threads than will wait for a lock at once, so that reads find a free one.
_threads = DatabaseThreads(40, "site-database")
# Concurrent requests; more would only contend for the interpreter, and some would starve.
_TURNS = 2
# A request that waits longer than this skips the queue: the ones ahead are blocked on a lock or on
# I/O.
_PATIENCE_SECONDS = 0.1


class ThreadedSite(ASGIHandler):
    """Serve a request on one thread.

    Django's handler switches threads for each middleware and signal, and opens a connection per
    request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            async with self._turn():
                response = await _threads.run(self._answer, scope, body)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        turns = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_TURNS))
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await turns.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            turns.release()

    def _answer(self, scope: Any, body: IO[bytes]) -> Any:
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=type(self), scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = self.get_response(request) if request else refusal
        response._handler_class = type(self)
        if not response.streaming:
            # The content stays; resources of the request are released here, in the thread that
            # holds them.
            response.close()
            if len(response.content) >= LARGE_EXCHANGE_BYTES:
                connection.close()  # SQLite would keep the pages it read
        elif isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Send the stream until it ends or the client disconnects."""
        sending = asyncio.create_task(self.send_response(response, send))
        listening = asyncio.create_task(self.listen_for_disconnect(receive))
        try:
            await asyncio.wait({sending, listening}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            listening.cancel()
            await asyncio.gather(sending, listening, return_exceptions=True)
            await _threads.run(response.close)
