"""Run django-mcp-server 0.5.7, written for mcp 1.x, on mcp 2.3. docs/decisions says why, and when
to drop it.
"""

import hashlib
from typing import Any

import mcp.server
from django.conf import settings
from mcp.server import MCPServer, Server
from mcp.server.request_state import RequestStateSecurity


class FastMCP(MCPServer[Any]):
    """Provide mcp 1.x's name and argument order for MCPServer of 2.x."""

    # Read by the package's own session manager, which is never started here.
    _event_store = None

    def __init__(
        self, name: str | None = None, instructions: str | None = None, **options: Any
    ) -> None:
        # All web processes share one key; otherwise the second round of a call fails on another
        # process.
        key = hashlib.sha256(b"mcp-request-state" + settings.SECRET_KEY.encode()).digest()
        super().__init__(
            name,
            instructions=instructions,
            subscriptions=False,  # subscribing.py serves subscriptions/listen
            request_state_security=RequestStateSecurity(keys=[key]),
            **options,
        )

    @property
    def _mcp_server(self) -> Server[Any]:
        return self._lowlevel_server


mcp.server.FastMCP = FastMCP  # type: ignore[attr-defined]  # what the package imports
