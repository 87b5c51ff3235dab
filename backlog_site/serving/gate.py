"""Resolve the client address behind our proxies and enforce rate limits, as the outermost ASGI
layer.
"""

import hashlib
import ipaddress
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any

from django.conf import settings

from backlog_site.serving.rate_limit import Counter, Rate, Subject, Usage
from resources_app.errors import RateLimited
from resources_app.identity.credentials import bearer_secret

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# Probes and cheap files: they must always answer.
UNCOUNTED = ("/healthz", "/readyz", "/static/")
OF_TOKEN = Rate("token", settings.RATE_PER_TOKEN, 60)
OF_ADDRESS = Rate("address", settings.RATE_PER_ADDRESS, 60)
ALWAYS = {b"x-content-type-options": b"nosniff", b"referrer-policy": b"same-origin"}
if settings.IS_HTTPS:
    ALWAYS[b"strict-transport-security"] = (
        f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains; preload".encode()
    )
# The most expensive or most attacked requests, by method and path.
OF_PATH = {
    ("POST", "/o/register/"): Rate("registrations", settings.RATE_REGISTRATIONS, 3600),
    ("POST", "/o/token/"): Rate("grants", settings.RATE_GRANTS, 60),
    ("GET", "/o/authorize/"): Rate("consents", settings.RATE_GRANTS, 60),
    ("POST", "/login/"): Rate("sign-ins", settings.RATE_SIGN_INS, 300),
    ("POST", "/admin/login/"): Rate("sign-ins", settings.RATE_SIGN_INS, 300),
}


def guarded(application: Application) -> Application:
    counter = Counter()

    async def guarded_application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await application(scope, receive, send)
        address = real_address(scope)
        scope = {**scope, "client": (address, 0)}
        if scope["path"].startswith(UNCOUNTED):
            return await application(scope, receive, send)
        usages = await counter.count(list(_subjects(scope, address)))
        tightest = min(usages, key=lambda one: (not one.is_exceeded, one.remaining))
        if tightest.is_exceeded:
            return await _refuse(send, tightest)
        return await application(scope, receive, _telling(send, tightest))

    return guarded_application


def real_address(scope: Message) -> str:
    """Return the peer, or the address the outermost of our proxies saw.

    Ignores header values the client wrote.
    """
    peer = str((scope.get("client") or ("",))[0])
    if not settings.TRUSTED_PROXIES:
        return peer
    lines = [
        value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"
    ]
    hops = [hop.strip() for line in lines for hop in line.split(",")]
    if len(hops) < settings.TRUSTED_PROXIES:
        return peer
    try:
        return str(ipaddress.ip_address(hops[-settings.TRUSTED_PROXIES]))
    except ValueError:
        return peer


def _subjects(scope: Message, address: str) -> Iterator[Subject]:
    yield OF_ADDRESS, address
    if rate := OF_PATH.get((scope["method"], scope["path"])):
        yield rate, address
    authorization = next(
        (value for name, value in scope["headers"] if name == b"authorization"), b""
    )
    if header := authorization.decode("latin-1").strip():
        yield OF_TOKEN, hashlib.sha256((bearer_secret(header) or header).encode()).hexdigest()[:32]


def _headers(standing: Usage) -> list[tuple[bytes, bytes]]:
    told = {
        "ratelimit-limit": standing.rate.allowed,
        "ratelimit-remaining": standing.remaining,
        "ratelimit-reset": math.ceil(standing.resets_in),
    }
    return [(name.encode(), str(value).encode()) for name, value in told.items()]


def _safe(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Add the headers that Django's middleware sets, so that responses of /mcp have them too."""
    given = list(headers)
    missing = ALWAYS.keys() - {name.lower() for name, _ in given}
    return [*given, *((name, ALWAYS[name]) for name in sorted(missing))]


def _telling(send: Send, standing: Usage) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {
                **message,
                "headers": [*_safe(message.get("headers", ())), *_headers(standing)],
            }
        await send(message)

    return send_with_headers


async def _refuse(send: Send, standing: Usage) -> None:
    seconds = max(1, math.ceil(standing.resets_in))
    rate = standing.rate
    error = RateLimited(
        f"More than {rate.allowed} requests in {rate.seconds} seconds ({rate.name}).",
        suggestion=f"Wait {seconds} seconds.",
        retry_after=seconds,
    )
    body = json.dumps({"error": error.as_json()}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", str(seconds).encode()),
        *_headers(standing),
    ]
    await send({"type": "http.response.start", "status": error.status, "headers": _safe(headers)})
    await send({"type": "http.response.body", "body": body})
