"""Serve `/mcp` as an ASGI application: check the source, authenticate the caller and choose the
transport.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import structlog
from django.db import DatabaseError
from mcp.server.auth.middleware.auth_context import auth_context_var
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from backlog_site.mcp.auth import bearer_secret, caller_with
from backlog_site.mcp.backchannel import Backchannel, connect
from backlog_site.mcp.bus import bus
from backlog_site.mcp.context import Caller, Request, bind_request
from backlog_site.mcp.http import (
    RequestRefused,
    check_source,
    described,
    read_body,
    refusal,
    refusal_of,
    refuse_surrogates,
    send_json,
    without_blanks,
)
from backlog_site.mcp.legacy import LegacyLeg
from backlog_site.mcp.modern import ModernLeg, is_modern
from backlog_site.mcp.server import low_level
from backlog_site.mcp.sessions import SessionStore
from backlog_site.mcp.streams import SessionStreams
from backlog_site.serving.challenges import bearer_challenge
from resources_app.errors import BacklogError, Unauthenticated, Unavailable

RESTART_SECONDS = 1
ALLOWED_METHODS = b"GET, POST, DELETE"

logger = structlog.get_logger("backlog.mcp")


class McpEndpoint:
    """Serve `/mcp` for the ASGI lifespan of its process."""

    def __init__(self) -> None:
        self._redis = connect()
        self._backchannel = Backchannel(self._redis, on_changes=bus.wake)
        sessions = SessionStore(self._redis)
        self._modern = ModernLeg(low_level)
        self._legacy = LegacyLeg(low_level, sessions, self._backchannel)
        self._streams = SessionStreams(sessions, self._backchannel, bus)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        bus.open()
        jobs = [
            asyncio.ensure_future(_keep_running(job))
            for job in (self._backchannel.run, bus.run, bus.check_credentials)
        ]
        try:
            async with self._modern.run():
                yield
                bus.close()
        finally:
            for job in jobs:
                job.cancel()
            await self._redis.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = without_blanks(scope)
        try:
            await self._serve(scope, Headers(scope=scope), receive, send)
        except RequestRefused as refused:
            await _send_refusal(send, refused)
        except BacklogError as error:
            await _send_refusal(send, refusal_of(error))

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        check_source(headers)
        _bind(scope, await _authenticate(headers))
        match scope["method"], is_modern(headers):
            case "POST", modern:
                await self._post(scope, headers, receive, send, modern=modern)
            case "GET", False:
                session = await self._legacy.session_for(headers.get("mcp-session-id"))
                await self._streams.serve(session, headers, receive, send)
            case "DELETE", False:
                await self._legacy.delete(scope, send)
            case _, modern:
                raise RequestRefused(
                    405, headers=[(b"allow", b"POST" if modern else ALLOWED_METHODS)]
                )

    async def _post(
        self, scope: Scope, headers: Headers, receive: Receive, send: Send, *, modern: bool
    ) -> None:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise refusal(400, "The Content-Type must be application/json.")
        body = await read_body(headers, receive)
        scope.get("line", {}).update(described(body))
        refuse_surrogates(body)
        if modern:
            await self._modern.handle(scope, body, receive, send)
        else:
            await self._legacy.post(scope, body, send)


async def _send_refusal(send: Send, refused: RequestRefused) -> None:
    await send_json(send, refused.status, refused.body or None, refused.headers)


async def _authenticate(headers: Headers) -> Caller:
    secret = bearer_secret(headers.get("authorization", ""))
    try:
        caller = await caller_with(secret) if secret else None
    except DatabaseError as error:
        raise Unavailable("The database is busy or unreachable.") from error
    if caller is None or not caller.credential.is_for_mcp:
        problem = Unauthenticated("A valid token is needed." if secret else "A token is needed.")
        challenge = bearer_challenge(headers.get("host", ""), "invalid_token" if secret else None)
        raise RequestRefused(
            401, {"error": problem.as_json()}, [(b"www-authenticate", challenge.encode())]
        )
    return caller


def _bind(scope: Scope, caller: Caller) -> None:
    request_id = uuid.uuid4().hex
    address = (scope.get("client") or ("",))[0]
    bind_request(Request(caller, request_id, address, is_authenticated=True))
    known = {"request_id": request_id, "user_id": caller.user.pk}
    structlog.contextvars.bind_contextvars(**known)
    scope.get("line", {}).update(known, ip=address)
    # The SDK seals the state of a multi-round call for the user it finds here.
    token = AccessToken(
        token="", client_id="backlog", scopes=[caller.credential.scope], subject=str(caller.user.pk)
    )
    scope["user"] = AuthenticatedUser(token)
    auth_context_var.set(scope["user"])


async def _keep_running(job: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Restart the job when it fails. Streams depend on it for as long as the process runs."""
    while True:
        try:
            await job()
        except Exception:  # the edge of a process
            logger.exception("mcp_job_failed", job=job.__qualname__)
            await asyncio.sleep(RESTART_SECONDS)
