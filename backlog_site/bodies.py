"""Admit request bodies: identify the sender before storing them, enforce a deadline, and limit how
many arrive at once.

A body that arrives whole with its first part passes at once. Any other body has a deadline that
grows with the bytes received, as in Apache's mod_reqtimeout. Anonymous callers get their 401
without their body being read.
"""

import json
import time
from asyncio import timeout
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from django.db import DatabaseError
from starlette.datastructures import Headers

from backlog_site.accounts.sessions import user_of_session
from backlog_site.api.errors import is_json_path
from backlog_site.api.limits import BodyTooLarge
from backlog_site.mcp.auth import bearer_secret, caller_with
from backlog_site.serving.database_threads import in_thread
from backlog_site.viewer.events import session_key
from resources_app.errors import BacklogError, Unavailable, ValidationFailed

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

BODY_SECONDS = 20.0
BYTES_PER_SECOND = 4096
# Limit for sign-in forms and OAuth, which have no authenticated caller yet.
MAX_ANONYMOUS = 64 * 1024
# Bodies arriving at the same time, per process.
MAX_BODIES = 64


class BodyTooSlow(ValidationFailed):
    status = 408
    suggestion = "Send the whole body at once."

    def __init__(self) -> None:
        super().__init__(
            f"The request body did not arrive within {BODY_SECONDS:g} seconds.", field="body"
        )


class _Body:
    """Receive one body. Once it is refused, the application sees a disconnected client."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._first: list[Message] = []
        self._waited = 0.0
        self._received = 0
        self.is_whole = False
        self.most: int | None = None
        self.refusal: BacklogError | None = None

    async def start(self) -> None:
        self._first = [await self.receive()]

    async def receive(self) -> Message:
        if self._first:
            return self._first.pop()
        if self.refusal:
            return {"type": "http.disconnect"}
        if self.is_whole:
            return await self._receive()
        return self._checked(await self._next())

    async def _next(self) -> Message | None:
        began = time.monotonic()
        try:
            async with timeout(BODY_SECONDS + self._received / BYTES_PER_SECOND - self._waited):
                return await self._receive()
        except TimeoutError:
            return None
        finally:
            self._waited += time.monotonic() - began

    def _checked(self, message: Message | None) -> Message:
        if message is None:
            self.refusal = BodyTooSlow()
            return {"type": "http.disconnect"}
        self._received += len(message.get("body", b""))
        self.is_whole = not message.get("more_body", False)
        if self.most is not None and self._received > self.most:
            self.refusal = BodyTooLarge(self.most)
            return {"type": "http.disconnect"}
        return message


class Admission:
    def __init__(self, application: Application) -> None:
        self._application = application
        self._arriving = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            return await self._application(scope, receive, send)
        headers = Headers(raw=scope["headers"])
        if not _claims_somebody(headers) and is_json_path(scope["path"]):
            return await self._application(*_without_body(scope, receive), send)
        body = _Body(receive)
        await body.start()
        if body.is_whole:
            return await self._application(scope, body.receive, send)
        return await self._serve_arriving(scope, headers, body, send)

    async def _serve_arriving(
        self, scope: Message, headers: Headers, body: _Body, send: Send
    ) -> None:
        answer = _Answer(send, body)
        self._arriving += 1
        try:
            if self._arriving > MAX_BODIES:
                raise Unavailable(f"{MAX_BODIES} request bodies are being received already.")
            is_known = await _is_known(headers)
            body.most = None if is_known else MAX_ANONYMOUS
            if not is_known and is_json_path(scope["path"]):
                await self._application(*_without_body(scope, body.receive), answer.send)
            else:
                await self._application(scope, body.receive, answer.send)
        except BacklogError as error:
            body.refusal = error
        finally:
            self._arriving -= 1
        await answer.finish()


class _Answer:
    """Forward the application's response unless its body was refused before the response began."""

    def __init__(self, send: Send, body: _Body) -> None:
        self._send = send
        self._body = body
        self._is_started = False

    async def send(self, message: Message) -> None:
        if self._is_started or not self._body.refusal:
            self._is_started = True
            await self._send(message)

    async def finish(self) -> None:
        if self._body.refusal and not self._is_started:
            await _refuse(self._send, self._body.refusal)


def _has_body(scope: Message) -> bool:
    headers = dict(scope["headers"])
    return b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"


def _claims_somebody(headers: Headers) -> bool:
    return bool(bearer_secret(headers.get("authorization", "")) or session_key(headers))


async def _is_known(headers: Headers) -> bool:
    try:
        if secret := bearer_secret(headers.get("authorization", "")):
            return await caller_with(secret) is not None
        return (
            bool(session_key(headers))
            and await in_thread(user_of_session, session_key(headers)) is not None
        )
    except DatabaseError as error:
        raise Unavailable("The database is busy or unreachable.") from error


def _without_body(scope: Message, receive: Receive) -> tuple[Message, Receive]:
    """Return the request without its body.

    Authentication rejects it before the body would matter.
    """
    framing = (b"content-length", b"transfer-encoding")
    headers = [(name, value) for name, value in scope["headers"] if name not in framing]
    parts: list[Message] = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive_nothing() -> Message:
        return parts.pop() if parts else await receive()

    return {**scope, "headers": [*headers, (b"content-length", b"0")]}, receive_nothing


async def _refuse(send: Send, error: BacklogError) -> None:
    body = json.dumps({"error": error.as_json()}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        *([(b"retry-after", b"2")] if error.retryable else []),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
