"""Serve the GET stream of the handshake era.

A session has one; a returning client resumes where it stopped.
"""

import asyncio
import secrets
from typing import Any

import structlog
from starlette.datastructures import Headers
from starlette.types import Receive, Send

from backlog_site.mcp.backchannel import Backchannel
from backlog_site.mcp.bus import RESOURCE_LIST, ChangeBus, Notice, Watcher
from backlog_site.mcp.context import current_request
from backlog_site.mcp.http import PING, PING_SECONDS, EventStream, Message, event, refusal
from backlog_site.mcp.sessions import Session, SessionStore
from backlog_site.serving.database_threads import in_thread
from resources_app.errors import Unavailable, ValidationFailed
from resources_app.reading import watching
from resources_app.reading.watching import Position

# Older clients treat an event without a message as broken.
PRIMING_VERSION = "2025-11-25"

logger = structlog.get_logger("backlog.mcp")


class SessionStream:
    """Serve one open GET request.

    It starts after the position where the previous stream ended, if there was one.
    """

    def __init__(
        self, session: Session, seen: Position | None, watcher: Watcher, sessions: SessionStore
    ) -> None:
        self.id = secrets.token_hex(8)
        self.session = session
        self.watcher = watcher
        self._seen = seen
        self._written: Position | None = None
        self._sessions = sessions

    async def refresh(self) -> None:
        """Sync with the session's subscriptions, which any process may have changed."""
        kept = await self._sessions.watches(self.session.id)
        for uri in set(self.watcher.watches) - set(kept) - {RESOURCE_LIST}:
            self.watcher.unwatch(uri)
        for uri, since in kept.items():
            self.watcher.watch(uri, max(since, self._seen or since))

    async def write(self, out: EventStream) -> None:
        start = min(watch.position for watch in self.watcher.watches.values())
        await out.write(
            event(None, str(start)) if self.session.protocol_version >= PRIMING_VERSION else PING
        )
        held: Notice | None = None
        while held or not self.watcher.is_closed:
            notice = await self.watcher.next(0 if held else PING_SECONDS)
            if held:
                await out.write(_frame(held, notice))
                self._written = held.position
            elif notice is None:
                await out.write(PING)
                await self.remember()
            held = notice

    async def remember(self) -> None:
        """Store where a later stream resumes if its client cannot say, and drop the addresses it
        lost.
        """
        written, self._written = self._written, None
        lost, self.watcher.lost = self.watcher.lost, []
        try:
            if written:
                await self._sessions.note_position(self.session.id, written)
            if lost:
                await self._sessions.unwatch(self.session.id, *lost)
        except Unavailable:
            logger.warning("mcp_position_not_kept", user=self.session.user_id)


def _frame(notice: Notice, following: Notice | None) -> bytes:
    """Encode a notice.

    Only the last notice of a change has an id, so a client that missed it gets the whole change
    again.
    """
    is_last = following is None or following.position != notice.position
    return event(_notification(notice), str(notice.position) if is_last else None)


class SessionStreams:
    """Track the streams of this process."""

    def __init__(self, sessions: SessionStore, backchannel: Backchannel, bus: ChangeBus) -> None:
        self._sessions = sessions
        self._backchannel = backchannel
        self._bus = bus
        self._streams: set[SessionStream] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        backchannel.on("watches", self._watches_changed)
        backchannel.on("opened", self._opened_elsewhere)
        backchannel.on("ended", self._session_ended)
        backchannel.on_reconnect(self._refresh_all)

    async def serve(self, session: Session, headers: Headers, receive: Receive, send: Send) -> None:
        if "text/event-stream" not in headers.get("accept", "") and "*/*" not in headers.get(
            "accept", ""
        ):
            raise refusal(406, "Not Acceptable: the client must accept text/event-stream")
        seen = _last_seen(session, headers.get("last-event-id"))
        end = await in_thread(watching.end_of_feed)
        with self._bus.attached(current_request().caller) as watcher:
            watcher.watch(RESOURCE_LIST, seen or end)
            stream = SessionStream(session, seen, watcher, self._sessions)
            self._streams.add(stream)
            try:
                await self._backchannel.tell("opened", session=session.id, stream=stream.id)
                await stream.refresh()
                self._bus.wake()
                await _until_disconnected(
                    stream, EventStream(send, [(b"mcp-session-id", session.id.encode())]), receive
                )
            finally:
                self._streams.discard(stream)
                await stream.remember()

    def _opened_elsewhere(self, body: dict[str, Any]) -> None:
        """Close older streams of the session.

        The newest wins, because the previous connection may be silently broken.
        """
        for stream in self._streams:
            if stream.session.id == body["session"] and stream.id != body["stream"]:
                stream.watcher.close()

    def _session_ended(self, body: dict[str, Any]) -> None:
        for stream in self._streams:
            if stream.session.id == body["session"]:
                stream.watcher.close()

    def _watches_changed(self, body: dict[str, Any]) -> None:
        self._refresh(stream for stream in self._streams if stream.session.id == body["session"])

    def _refresh_all(self) -> None:
        self._refresh(self._streams)

    def _refresh(self, streams: Any) -> None:
        for stream in list(streams):
            task = asyncio.ensure_future(self._refresh_one(stream))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _refresh_one(self, stream: SessionStream) -> None:
        try:
            await stream.refresh()
        except Unavailable:
            return  # the reconnect triggers another refresh
        self._bus.wake()


def _last_seen(session: Session, last_event_id: str | None) -> Position | None:
    """Return the client's last event id, or else the stored position.

    It is None before the first stream.
    """
    if not last_event_id:
        return session.position
    try:
        return Position.parse(last_event_id)
    except ValidationFailed:
        raise refusal(400, "Last-Event-ID is not one of ours") from None


async def _until_disconnected(stream: SessionStream, out: EventStream, receive: Receive) -> None:
    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    writing = asyncio.ensure_future(stream.write(out))
    leaving = asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            writing.result()
            await out.end()
    finally:
        writing.cancel()
        leaving.cancel()


def _notification(notice: Notice) -> Message:
    if notice.uri == RESOURCE_LIST:
        return {"jsonrpc": "2.0", "method": "notifications/resources/list_changed"}
    params = {"uri": notice.uri, "_meta": notice.meta}
    return {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}
