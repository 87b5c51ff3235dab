"""Deliver changes to the streams of this process.

Deliveries come from the change table alone. Each watched address has its own position in it, so a
missed wake-up, a failed poll or a change that settles late neither loses nor duplicates anything.
Redis only says when to look.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError

from backlog_site.mcp.context import Caller
from backlog_site.serving.database_threads import in_thread
from resources_app.errors import RateLimited
from resources_app.identity.credentials import still_standing
from resources_app.identity.roles import Actor
from resources_app.models import Change
from resources_app.reading import watching
from resources_app.reading.watching import Position, position_of

POLL_SECONDS = 2
UNSETTLED_SECONDS = 0.05
CREDENTIALS_SECONDS = 1
PAGE = 200
MAX_WAITING_NOTICES = 1000
MAX_WATCHES = 1000
# Represents the list of all resources among the watched addresses.
RESOURCE_LIST = ""

logger = structlog.get_logger("backlog.mcp")


@dataclass
class Rules:
    """Decide what may be watched and which changes match.

    The conformance fixture replaces them for its own addresses.
    """

    may_watch: Callable[[Actor, str], bool] = watching.may_watch
    matches: Callable[[Change, str], bool] = watching.matches


@dataclass(frozen=True)
class Notice:
    """Describe one change at one watched address, or in the list of all resources."""

    uri: str
    position: Position
    meta: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class WatchedUri:
    uri: str
    position: Position


class Watcher:
    """Track one open stream: its watches, and the notices queued for writing."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.watches: dict[str, WatchedUri] = {}
        self.lost: list[str] = []
        self._notices: asyncio.Queue[Notice] = asyncio.Queue(MAX_WAITING_NOTICES)
        self._closed = asyncio.Event()

    def watch(self, uri: str, position: Position) -> None:
        if len(self.watches) >= MAX_WATCHES:
            raise RateLimited(f"A stream watches {MAX_WATCHES} addresses at most.")
        self.watches.setdefault(uri, WatchedUri(uri, position))

    def unwatch(self, uri: str) -> None:
        self.watches.pop(uri, None)

    def lose(self, uri: str) -> None:
        """Stop watching an address after access to it ended."""
        self.unwatch(uri)
        self.lost.append(uri)

    def close(self) -> None:
        """End the stream after the notices already queued."""
        self._closed.set()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def offer(self, notice: Notice) -> None:
        """Queue a notice.

        A slow client loses its stream instead of single notices; it reconnects and resumes.
        """
        if self._notices.full():
            logger.warning("mcp_stream_too_slow", user=self.caller.user.pk)
            self.close()
        if not self.is_closed:
            self._notices.put_nowait(notice)

    async def next(self, timeout: float) -> Notice | None:
        """Return the next notice, or None after the timeout or when the watcher was closed."""
        if not self._notices.empty():
            return self._notices.get_nowait()
        getting = asyncio.ensure_future(self._notices.get())
        closing = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait(
                {getting, closing}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED
            )
            return getting.result() if getting.done() else None
        finally:
            getting.cancel()
            closing.cancel()

    async def notices(self) -> AsyncIterator[Notice]:
        while not self.is_closed or not self._notices.empty():
            if notice := await self.next(POLL_SECONDS):
                yield notice


@dataclass(frozen=True)
class Span:
    """Mark the next part of the feed for a watch."""

    start: Position
    until: Position | None


Pair = tuple[Watcher, WatchedUri]


@dataclass
class Delivery:
    """Hold what one poll found for one watch, and how far it read."""

    watcher: Watcher
    watch: WatchedUri
    end: Position
    notices: list[Notice]
    is_lost: bool


class ChangeBus:
    def __init__(self) -> None:
        self.rules = Rules()
        self._watchers: set[Watcher] = set()
        self._wake = asyncio.Event()
        self._is_closed = False

    @contextmanager
    def attached(self, caller: Caller) -> Iterator[Watcher]:
        """Yield a watcher that receives notices while the block runs."""
        streams = Counter(watcher.caller.user.pk for watcher in self._watchers)
        if streams[caller.user.pk] >= settings.MCP_MAX_STREAMS_PER_USER:
            raise RateLimited(f"{settings.MCP_MAX_STREAMS_PER_USER} streams are open already.")
        watcher = Watcher(caller)
        self._watchers.add(watcher)
        if self._is_closed:
            watcher.close()
        try:
            yield watcher
        finally:
            watcher.close()
            self._watchers.discard(watcher)

    def wake(self) -> None:
        self._wake.set()

    def open(self) -> None:
        self._is_closed = False

    def close(self) -> None:
        """End every stream, including ones still to open.

        The process is stopping, and their clients resume elsewhere.
        """
        self._is_closed = True
        for watcher in self._watchers:
            watcher.close()

    async def run(self) -> None:
        """Run the poller of this process.

        It can be cancelled and restarted, because the watches keep their positions.
        """
        pause: float = POLL_SECONDS
        while True:
            await self._wait(pause)
            try:
                pause = UNSETTLED_SECONDS if await self._deliver() else POLL_SECONDS
            except DatabaseError as error:
                logger.warning("mcp_poll_failed", reason=str(error))
                pause = POLL_SECONDS

    async def check_credentials(self) -> None:
        """End the streams of revoked or expired tokens and of deactivated users."""
        while True:
            await asyncio.sleep(CREDENTIALS_SECONDS)
            credentials = {watcher: watcher.caller.credential for watcher in self._watchers}
            # A browser's stream checks its session itself.
            held = {watcher: one for watcher, one in credentials.items() if one.kind != "session"}
            try:
                standing = await in_thread(still_standing, held.values()) if held else set()
            except DatabaseError as error:
                logger.warning("mcp_credentials_not_checked", reason=str(error))
                continue
            for watcher, credential in held.items():
                if credential.key not in standing:
                    watcher.close()

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return
        finally:
            self._wake.clear()

    async def _deliver(self) -> bool:
        """Deliver the next changes. Return True when more will come soon."""
        spans: defaultdict[Span, list[Pair]] = defaultdict(list)
        for watcher in self._watchers:
            for span, watch in _next_of(watcher):
                spans[span].append((watcher, watch))
        more = False
        for span, pairs in spans.items():
            deliveries, unread = await in_thread(_collect, span, pairs, self.rules)
            more |= unread
            _hand_out(deliveries)
        return more


def _next_of(watcher: Watcher) -> list[tuple[Span, WatchedUri]]:
    """Return the watches that are furthest behind, up to the next position.

    A stream gets changes in feed order.
    """
    places = sorted({watch.position for watch in watcher.watches.values()})[:2]
    span = Span(places[0], places[1] if len(places) > 1 else None) if places else None
    return [
        (span, watch) for watch in watcher.watches.values() if span and watch.position == span.start
    ]


def _collect(span: Span, pairs: list[Pair], rules: Rules) -> tuple[list[Delivery], bool]:
    """Read one page of changes for all watches at the same position. Runs in a database thread."""
    page = watching.changes_after(span.start, PAGE, span.until)
    uris = {watch.uri for _, watch in pairs}
    found = {uri: _notices_of(page.changes, uri, rules) for uri in uris} if page.changes else {}
    interest: defaultdict[int, set[int]] = defaultdict(set)
    for watcher, watch in pairs:
        interest[watcher.caller.user.pk].update(found.get(watch.uri, ()))
    visible = {
        user: watching.visible_among(user, wanted) for user, wanted in interest.items() if wanted
    }
    deliveries = [
        _delivery(
            watcher,
            watch,
            page.end,
            found.get(watch.uri, {}),
            visible.get(watcher.caller.user.pk, set()),
        )
        for watcher, watch in pairs
    ]
    return deliveries, page.more


def _notices_of(changes: list[Change], uri: str, rules: Rules) -> dict[int, Notice]:
    """Return the notices by change, built once for all watchers of the address."""
    if uri == RESOURCE_LIST:
        return {
            one.pk: Notice(uri, position_of(one)) for one in changes if watching.alters_list(one)
        }
    touching = (change for change in changes if rules.matches(change, uri))
    return {one.pk: Notice(uri, position_of(one), watching.describe(one, uri)) for one in touching}


def _delivery(
    watcher: Watcher, watch: WatchedUri, end: Position, found: dict[int, Notice], visible: set[int]
) -> Delivery:
    notices = [notice for change, notice in found.items() if change in visible]
    if watch.uri == RESOURCE_LIST:
        notices = notices[-1:]  # one notice covers any number of list changes
        return Delivery(watcher, watch, end, notices, is_lost=False)
    if notices and not watching.may_list(watcher.caller.user.pk, watch.uri):
        notices = []
    is_lost = len(notices) < len(found) and watching.names_one_thing(watch.uri)
    return Delivery(watcher, watch, end, notices, is_lost)


def _hand_out(deliveries: list[Delivery]) -> None:
    """Queue notices for watches that still exist, in change order for each watcher."""
    wanted = [one for one in deliveries if one.watcher.watches.get(one.watch.uri) is one.watch]
    notices = [(notice, one.watcher) for one in wanted for notice in one.notices]
    for notice, watcher in sorted(notices, key=lambda pair: pair[0].position):
        watcher.offer(notice)
    for one in wanted:
        one.watch.position = one.end
        if one.is_lost:
            one.watcher.lose(one.watch.uri)


bus = ChangeBus()
