"""Provide the HTTP parts that both transports use: rejections, JSON responses and event streams."""

import json
import re
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from resources_app.errors import BacklogError

# The same bound as REST: BACKLOG_MAX_BODY_BYTES.
MAX_BODY: int = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
# Longer messages are not parsed just to name them in the log.
MAX_DESCRIBED = 64 * 1024
MAX_NAME = 300
PING_SECONDS = 15
PING = b": ping\r\n\r\n"
INVALID_REQUEST = -32600
PARSE_ERROR = -32700
SERVER_ERROR = -32000

_METHOD = re.compile(rb'"method"\s*:\s*"([\w/.-]{1,100})"')

Message = dict[str, Any]
HeaderList = list[tuple[bytes, bytes]]

_EVENT_STREAM: HeaderList = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


@dataclass(eq=False)
class RequestRefused(Exception):
    """End the request with this status, and with a body unless it is empty."""

    status: int
    body: Message = field(default_factory=dict)
    headers: HeaderList = field(default_factory=list)


def refusal(
    status: int, message: str, code: int = INVALID_REQUEST, request_id: Any = None
) -> RequestRefused:
    return RequestRefused(status, error_message(code, message, request_id))


def error_message(code: int, message: str, request_id: Any = None, data: Any = None) -> Message:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def refusal_of(error: BacklogError) -> RequestRefused:
    """Convert errors raised before a request reached the protocol, such as no broker or too many
    streams.
    """
    headers = [(b"retry-after", b"2")] if error.retryable else []
    return RequestRefused(
        error.status, error_message(SERVER_ERROR, error.message, data=error.as_json()), headers
    )


def check_source(headers: Headers) -> None:
    """Reject requests that a page of another site sends through a user's browser (DNS
    rebinding).
    """
    host = headers.get("host", "")
    domain, _ = split_domain_port(host)
    if not domain or not validate_host(domain, settings.ALLOWED_HOSTS):
        raise refusal(421, "This host name is not served here.")
    origin = headers.get("origin")
    if origin is not None and origin not in _allowed_origins(host):
        raise refusal(403, "Requests from this origin are not allowed.")


def _allowed_origins(host: str) -> Iterable[str]:
    public = urlsplit(settings.PUBLIC_URL)
    return {f"{public.scheme}://{public.netloc}", f"http://{host}", f"https://{host}"}


async def read_body(headers: Headers, receive: Receive) -> bytes:
    declared = headers.get("content-length", "")
    if (
        declared.isascii()
        and declared.isdigit()
        and (len(declared) > 9 or int(declared) > MAX_BODY)
    ):
        raise refusal(413, f"The body is larger than {MAX_BODY} bytes.")
    body = bytearray()
    more = True
    while more:
        part = await receive()
        if part["type"] == "http.disconnect":
            raise RequestRefused(400)
        body += part.get("body", b"")
        more = part.get("more_body", False)
        if len(body) > MAX_BODY:
            raise refusal(413, f"The body is larger than {MAX_BODY} bytes.")
    return bytes(body)


def described(body: bytes) -> Message:
    """Return the method, tool or prompt, and address of a message for the log.

    Never returns its arguments.
    """
    if len(body) > MAX_DESCRIBED:
        found = _METHOD.search(body[:MAX_DESCRIBED]) or _METHOD.search(body[-MAX_DESCRIBED:])
        return {"rpc_method": found[1].decode()} if found else {}
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(message, list):
        return {"rpc_batch": len(message)}
    return _named(message) if isinstance(message, dict) else {}


def _named(message: Message) -> Message:
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    arguments = params.get("arguments")
    arguments = arguments if isinstance(arguments, dict) else {}
    named = {
        "rpc_method": message.get("method"),
        "name": params.get("name"),
        "uri": params.get("uri") or arguments.get("uri") or arguments.get("id"),
    }
    return {
        name: value[:MAX_NAME] for name, value in named.items() if isinstance(value, str) and value
    }


def refuse_surrogates(body: bytes) -> None:
    """Reject unpaired surrogates.

    They are legal in JSON, but neither databases nor UTF-8 can store them.
    """
    if b"\\u" not in body:
        return
    try:
        json.dumps(json.loads(body), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise refusal(400, "The body has an unpaired surrogate.", PARSE_ERROR) from None
    except (ValueError, RecursionError):
        return  # not JSON at all: the parser reports it


async def send_json(
    send: Send, status: int, body: Any = None, headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    encoded = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    described = [(b"content-type", b"application/json")] if encoded else []
    length = (b"content-length", str(len(encoded)).encode())
    await send(
        {"type": "http.response.start", "status": status, "headers": [*described, length, *headers]}
    )
    await send({"type": "http.response.body", "body": encoded})


def event(message: Message | None, event_id: str | None = None) -> bytes:
    """Encode an event. Without a message it carries only its id."""
    lines = [f"id: {event_id}"] if event_id else []
    body = "" if message is None else json.dumps(message, separators=(",", ":"))
    kind = [] if message is None else ["event: message"]
    return ("\r\n".join([*lines, *kind, f"data: {body}"]) + "\r\n\r\n").encode()


class EventStream:
    """Write a response body as server-sent events."""

    def __init__(self, send: Send, headers: HeaderList | None = None) -> None:
        self._send = send
        self._headers = headers or []
        self.is_open = False

    async def write(self, frame: bytes) -> None:
        if not self.is_open:
            self.is_open = True
            headers = [*_EVENT_STREAM, *self._headers]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})

    async def end(self, frame: bytes = b"") -> None:
        await self._send({"type": "http.response.body", "body": frame, "more_body": False})


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that replays a body for an inner application."""
    parts = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> MutableMapping[str, Any]:
        return parts.pop() if parts else await receive()

    return receive_again


def without_blanks(scope: Scope) -> Scope:
    """Strip blanks around header values, which are not part of them (RFC 9110).

    The server's parser leaves trailing ones.
    """
    return {**scope, "headers": [(name, value.strip()) for name, value in scope["headers"]]}
