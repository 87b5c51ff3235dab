"""Serve `/api/v1/events/`: change notices as server-sent events, without content and without
holding a thread.

An ASGI application beside Django's, because a view would hold a database thread for the length of
its response.
"""

import asyncio
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from backlog_site.accounts.sessions import user_of_session
from backlog_site.mcp.auth import bearer_secret, caller_with
from backlog_site.mcp.bus import ChangeBus, Notice, Watcher
from backlog_site.mcp.context import Caller
from backlog_site.mcp.http import (
    PING,
    PING_SECONDS,
    EventStream,
    RequestRefused,
    check_source,
    event,
    send_json,
)
from backlog_site.serving.challenges import bearer_challenge
from backlog_site.serving.database_threads import in_thread
from resources_app.errors import BacklogError, InvalidOperation, Unauthenticated, Unavailable
from resources_app.identity.credentials import Credential
from resources_app.identity.roles import may_read
from resources_app.reading import watching
from resources_app.reading.watching import Position

PATH = "/api/v1/events/"
FEED = "mcp://backlog/changes"
RETRY_MILLISECONDS = 2000
_TOLD = (
    "uri",
    "kind",
    "id",
    "version",
    "action",
    "fields",
    "author",
    "agent",
    "via",
    "batch",
    "timestamp",
)


@dataclass(frozen=True)
class Listener:
    """Identify a connected client.

    Its session is re-checked periodically here; the bus re-checks a token.
    """

    caller: Caller
    session: str = ""

    async def is_welcome(self) -> bool:
        if not self.session:
            return True
        try:
            return await in_thread(_reader, self.session) is not None
        except DatabaseError:
            return True  # a busy database disconnects no client


class EventsEndpoint:
    def __init__(self, bus: ChangeBus) -> None:
        self._bus = bus

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            check_source(headers)
            if scope["method"] != "GET":
                raise InvalidOperation("Events are read with GET.", allowed=["GET"])
            listener = await _listener(headers)
            scope.get("line", {})["user_id"] = listener.caller.user.pk
            await self._serve(listener, _position(scope, headers), receive, send)
        except RequestRefused as refused:
            await send_json(send, refused.status, refused.body or None, refused.headers)
        except BacklogError as error:
            told = bearer_challenge(headers.get("host", "")).encode()
            challenge = [(b"www-authenticate", told)] if error.status == 401 else []
            await send_json(send, error.status, {"error": error.as_json()}, challenge)

    async def _serve(
        self, listener: Listener, seen: Position | None, receive: Receive, send: Send
    ) -> None:
        start = seen if seen else await in_thread(watching.end_of_feed)
        with self._bus.attached(listener.caller) as watcher:
            watcher.watch(FEED, start)
            self._bus.wake()
            await _until_disconnected(_write(watcher, listener, EventStream(send), start), receive)


async def _write(watcher: Watcher, listener: Listener, out: EventStream, start: Position) -> None:
    """Write notices.

    The first frame carries the start position, so that a connection lost before any notice resumes
    there.
    """
    await out.write(f"retry: {RETRY_MILLISECONDS}\r\nid: {start}\r\n\r\n".encode())
    clock = asyncio.get_running_loop().time
    check_at = clock() + PING_SECONDS
    while not watcher.is_closed:
        notice = await watcher.next(PING_SECONDS)
        await out.write(event(_told(notice), str(notice.position)) if notice else PING)
        if clock() >= check_at:
            check_at = clock() + PING_SECONDS
            if not await listener.is_welcome():
                break
    await out.end()


def _told(notice: Notice) -> dict[str, Any]:
    """Return who changed which version of what.

    Clients with access fetch the content themselves.
    """
    change = notice.meta["change"]
    return {name: change[name] for name in _TOLD}


async def _listener(headers: Headers) -> Listener:
    try:
        if secret := bearer_secret(headers.get("authorization", "")):
            caller = await caller_with(secret)
            if caller:
                return Listener(caller)
        elif (key := session_key(headers)) and (user := await in_thread(_reader, key)):
            return Listener(
                Caller(Credential("session", user.pk, user, "read", ""), secret=""), key
            )
    except DatabaseError as error:
        raise Unavailable("The database is busy or unreachable.") from error
    raise Unauthenticated("Sign in, or send a token.")


def _reader(key: str) -> User | None:
    user = user_of_session(key)
    return user if user and may_read(user) else None


def session_key(headers: Headers) -> str:
    try:
        cookies = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    kept = cookies.get(settings.SESSION_COOKIE_NAME)
    return kept.value if kept else ""


def _position(scope: Scope, headers: Headers) -> Position | None:
    """Return the resume position.

    A browser sends it by itself; a new tab that takes over sends it in the query.
    """
    given = (
        headers.get("last-event-id")
        or parse_qs(scope["query_string"].decode("latin-1")).get("last_event_id", [""])[0]
    )
    return Position.parse(given) if given else None


async def _until_disconnected(writing: Any, receive: Receive) -> None:
    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    tasks = [asyncio.ensure_future(writing), asyncio.ensure_future(disconnected())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
