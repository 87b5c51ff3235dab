"""Run the official client with its own OAuth, given only the address of the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from mcp.types import Implementation

from tests.browsing import Browser

REDIRECT = "http://127.0.0.1:53682/callback"


class Storage:
    """Store what the client remembers."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@asynccontextmanager
async def let_in(url: str, browser: Browser, storage: Storage, mode: str) -> AsyncIterator[Client]:
    answers: list[dict[str, str]] = []

    async def open_browser(authorization_url: str) -> None:
        answers.append(await anyio.to_thread.run_sync(browser.consent, authorization_url))

    async def come_back() -> AuthorizationCodeResult:
        answer = answers.pop()
        return AuthorizationCodeResult(
            code=answer["code"], state=answer["state"], iss=answer.get("iss")
        )

    metadata = OAuthClientMetadata(
        client_name="Agent of the test", redirect_uris=[REDIRECT], token_endpoint_auth_method="none"
    )
    auth = OAuthClientProvider(url, metadata, storage, open_browser, come_back)
    async with httpx2.AsyncClient(auth=auth, timeout=30, trust_env=False) as http:
        info = Implementation(name="claude-code", version="1")
        async with Client(
            streamable_http_client(url, http_client=http), mode=mode, client_info=info
        ) as client:
            yield client
