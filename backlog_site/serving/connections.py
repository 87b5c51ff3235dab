"""Bound the time and number of HTTP connections. uvicorn limits neither the time a request head
takes nor their number.

Run with `uvicorn --http backlog_site.serving.connections:TimedConnection`. Uses uvicorn's
HttpToolsProtocol, which is not a public API: `connections`, `cycle`, `transport`, `loop`,
`server_state` and the callbacks of the parser. tests/faults/test_slow_clients.py fails when they
change. Bodies have their deadline in bodies.py, which knows the sender.
"""

import asyncio
import resource
from typing import Any

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

# From the connection, or from the first byte of a later request, to the end of its head.
HEAD_SECONDS = 10
# For the rest of an unread body whose request was answered before it had arrived.
REST_SECONDS = 5
MAX_OPEN_FILES = 65_536


class TimedConnection(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._is_whole = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > settings.MAX_CONNECTIONS:
            self._refuse(503)
        else:
            self._expect(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_whole = False
        if self._deadline is None:
            self._expect(HEAD_SECONDS)

    def on_headers_complete(self) -> None:
        self._expect(None)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_whole = True
        self._expect(None)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_whole:
            self._expect(REST_SECONDS)

    def _expect(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._give_up)

    def _give_up(self) -> None:
        self._deadline = None
        cycle: Any = self.cycle
        if cycle is None:
            self._refuse(408)
        elif cycle.response_complete:
            self.transport.close()
        else:
            # An earlier request is still being answered; until then nothing more is read.
            self._expect(HEAD_SECONDS)

    def _refuse(self, status: int) -> None:
        if not self.transport.is_closing():
            self.transport.write(
                STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()


def allow_open_files() -> None:
    """Raise the open file limit.

    Each connection is an open file, and a few hundred slow clients exhaust the usual 1024.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
