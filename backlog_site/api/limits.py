"""Bound request bodies before anything reads them, and measure bodies that state no length.

Django's ASGI entry spools a body of any size to disk, and REST framework takes a chunked one for
empty.
"""

import tempfile
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

from django.http import JsonResponse

from resources_app.errors import ValidationFailed

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

IN_MEMORY = 256 * 1024


class BodyTooLarge(ValidationFailed):
    status = 413
    suggestion = (
        "Send less at once: split the batch, or write the change instead of the whole text."
    )

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The request body is larger than {limit} bytes.", field="body", max_bytes=limit
        )


def bounded(application: Application, limit: int) -> Application:
    """Return the application behind a limit of `limit` bytes on HTTP bodies."""

    async def bounded_application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await application(scope, receive, send)
        length = _stated_length(scope)
        if length is None:
            scope, receive, length = await _measured(scope, receive, limit)
        if length > limit:
            return await _refuse(send, limit)
        return await application(scope, receive, send)

    return bounded_application


def _stated_length(scope: Message) -> int | None:
    """Return None when the body must be read to know its length.

    The server enforces a stated length.
    """
    headers = dict(scope["headers"])
    if b"transfer-encoding" in headers:
        return None
    length = headers.get(b"content-length", b"0")
    return int(length) if length.isdigit() else 0


async def _measured(scope: Message, receive: Receive, limit: int) -> tuple[Message, Receive, int]:
    """Read the body until it ends or exceeds the limit, spool a long one to disk, and replay it
    with its length.
    """
    body: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # goes with the request
    more = True
    while more and body.tell() <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            return scope, _replay(body, [message], receive), 0
        body.write(message.get("body", b""))
        more = message.get("more_body", False)
    length = body.tell()
    body.seek(0)
    headers = [
        (name, value)
        for name, value in scope["headers"]
        if name not in (b"transfer-encoding", b"content-length")
    ]
    headers.append((b"content-length", str(length).encode()))
    return {**scope, "headers": headers}, _replay(body, [], receive), length


def _replay(body: IO[bytes], messages: list[Message], receive: Receive) -> Receive:
    is_over = False

    async def replaying() -> Message:
        nonlocal is_over
        if messages:
            return messages.pop()
        if is_over:
            return await receive()
        part = body.read(IN_MEMORY)
        is_over = len(part) < IN_MEMORY
        return {"type": "http.request", "body": part, "more_body": not is_over}

    return replaying


async def _refuse(send: Send, limit: int) -> None:
    error = BodyTooLarge(limit)
    answer = JsonResponse({"error": error.as_json()}, status=error.status)
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(answer.content)).encode()),
    ]
    await send({"type": "http.response.start", "status": answer.status_code, "headers": headers})
    await send({"type": "http.response.body", "body": answer.content})
