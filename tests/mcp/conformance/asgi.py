"""Serve the site with the token that the suite cannot send."""

import os
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "tests.mcp.conformance.settings"

from backlog_site.asgi import application as site

_AUTHORIZATION = (b"authorization", f"Bearer {os.environ['CONFORMANCE_TOKEN']}".encode())


async def application(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "http":
        scope = {**scope, "headers": [*scope["headers"], _AUTHORIZATION]}
    await site(scope, receive, send)
