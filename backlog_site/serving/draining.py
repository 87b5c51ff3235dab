"""Stop a web process without failing a request: SIGTERM, drain, close the streams, exit.

uvicorn stops accepting connections at SIGTERM and then waits for every response to end, which an
event stream never does. The handler installed here runs before uvicorn's. While the process drains
it answers as before, with `Connection: close`, and /readyz returns 503, so that the proxy in front
releases its connections. Then uvicorn stops accepting, the streams end and their clients resume at
another process.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import structlog
from django.conf import settings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]
Handler = Callable[[int, FrameType | None], Any]

# uvicorn checks every 0.1 s whether to stop. Streams end after that, or their clients would
# reconnect to this process.
STREAMS_END_AFTER = 0.3
REQUESTS_END_AFTER = 4.0
PROCESS_ENDS_AFTER = 6.0

logger = structlog.get_logger("backlog.draining")


class Drain:
    def __init__(self) -> None:
        self.is_draining = False
        self._requests: set[asyncio.Task[Any]] = set()

    def tracked(self, application: Application) -> Application:
        """Wrap the ASGI root so that its requests can be cancelled, and close their connections
        while the process drains.
        """

        async def tracked_application(scope: Message, receive: Receive, send: Send) -> None:
            task = asyncio.current_task()
            if scope["type"] != "http" or task is None:
                return await application(scope, receive, send)
            self._requests.add(task)
            try:
                await application(scope, receive, self._closing(send))
            except asyncio.CancelledError:
                if not self.is_draining:
                    raise
            finally:
                self._requests.discard(task)

        return tracked_application

    @contextmanager
    def on_signals(self, close_streams: Callable[[], None]) -> Iterator[None]:
        """Handle the termination signals while the block runs."""
        self.is_draining = False
        servers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        handled = {number: handler for number, handler in servers.items() if callable(handler)}
        if threading.current_thread() is not threading.main_thread():
            handled = {}
        loop = asyncio.get_running_loop()
        for number, handler in handled.items():
            signal.signal(number, self._ending(loop, handler, close_streams))
        try:
            yield
        finally:
            for number, handler in handled.items():
                signal.signal(number, handler)

    def _ending(
        self, loop: asyncio.AbstractEventLoop, server: Handler, close_streams: Callable[[], None]
    ) -> Handler:
        def stop(number: int) -> None:
            server(number, None)
            loop.call_later(STREAMS_END_AFTER, close_streams)
            loop.call_later(REQUESTS_END_AFTER, self._cancel_requests)
            _exit_later()

        def handle(number: int, _frame: FrameType | None) -> None:
            seconds = 0 if self.is_draining or number == signal.SIGINT else settings.DRAIN_SECONDS
            self.is_draining = True
            loop.call_soon_threadsafe(loop.call_later, seconds, stop, number)

        return handle

    def _cancel_requests(self) -> None:
        if self._requests:
            logger.warning("requests_cancelled", count=len(self._requests))
        for task in self._requests:
            task.cancel()

    def _closing(self, send: Send) -> Send:
        async def send_closing(message: Message) -> None:
            if self.is_draining and message["type"] == "http.response.start":
                message = {
                    **message,
                    "headers": [*message.get("headers", ()), (b"connection", b"close")],
                }
            await send(message)

        return send_closing


def _exit_later() -> None:
    """Exit even if a thread hangs. Its uncommitted work is rolled back."""
    watchdog = threading.Timer(PROCESS_ENDS_AFTER, os._exit, [1])
    watchdog.daemon = True
    watchdog.start()


drain = Drain()
