"""Serve Streamable HTTP from 2026-07-28 on.

Requests are independent, and the SDK's own transport serves them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from backlog_site.mcp.http import MAX_BODY, replay

# Host and Origin were already checked against exact lists.
_UNCHECKED = TransportSecuritySettings(enable_dns_rebinding_protection=False)
# A client must have sent one of these for anything but the answer to reach it.
_WANTS_EVENTS = (b'"progressToken"', b"/logLevel", b"subscriptions/listen")


class ModernLeg:
    """Choose between two SDK transports.

    Single JSON responses cost a third less where no event can precede them.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._in_one_piece = _transport(server, json_response=True)
        self._with_events = _transport(server, json_response=False)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        async with self._in_one_piece.run(), self._with_events.run():
            yield

    async def handle(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        wants_events = any(sign in body for sign in _WANTS_EVENTS)
        transport = self._with_events if wants_events else self._in_one_piece
        await transport.handle_request(scope, replay(body, receive), send)


def is_modern(headers: Headers) -> bool:
    """Decide by the header alone.

    The SDK lists the supported versions to clients with an unknown one.
    """
    version = headers.get("mcp-protocol-version")
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _transport(server: Server[Any], *, json_response: bool) -> StreamableHTTPSessionManager:
    return StreamableHTTPSessionManager(
        server,
        json_response=json_response,
        stateless=True,
        security_settings=_UNCHECKED,
        max_request_body_size=MAX_BODY,
    )
