"""Django under ASGI with one change of threads for a request; the reasons are in docs/decisions/0012-serving-layout.md."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import IO, Any
from weakref import WeakKeyDictionary

from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.http import FileResponse
from django.http.response import HttpResponseBase
from django.urls import set_script_prefix

from backlog_site.serving.allocator import collect_after
from backlog_site.serving.database_threads import DatabaseThreads

# More than will wait for a lock at once, so that reads find one.
_threads = DatabaseThreads(40, "site-database")
# So many at a time: more would only fight for the interpreter, and some of them lose for long.
_TURNS = 2
# Whoever has waited so long is behind somebody who waits himself, for a lock or another server: then out of turn.
_PATIENCE_SECONDS = 0.1


class ThreadedSite(ASGIHandler):
    """Django's own changes threads for each middleware and each signal, and opens a database connection for each request."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def handle(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with closing(body):
            size = body.seek(0, os.SEEK_END)
            body.seek(0)
            async with self._turn():
                response = await _threads.run(self._answer, scope, body)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                size = max(size, len(response.content))
                await self.send_response(response, send)
        del response
        collect_after(size)

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
            # Its content stays; what belongs to the request ends here, in the thread that has it.
            response.close()
        elif isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        return response

    async def _stream(self, response: HttpResponseBase, receive: Any, send: Any) -> None:
        """Until it ends or nobody listens any more."""
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
