"""Execute a run: prefetch pages, and write each page with its resume point in one transaction."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.utils import timezone

from resources_app.intelligencebank.client import IBClient, Listing, ResultPage, Session, renewing
from resources_app.intelligencebank.connections import ServiceSessions
from resources_app.intelligencebank.failures import SessionExpired
from resources_app.intelligencebank.sync import runs
from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.models import IBSyncRun

Place = dict[str, Any]
Progress = Callable[[int, int, str], None]


class Crawl:
    def __init__(self, run: IBSyncRun, client: IBClient, fence: int) -> None:
        self.run, self.connection, self.client, self.fence = run, run.connection, client, fence
        self.sessions = ServiceSessions(self.connection, client)
        self.session: Session | None = None
        self._ahead: tuple[Listing, Future[ResultPage]] | None = None
        # Prefetch one page: the network is awaited while the database works.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ib-page")
        self._told_calls = 0

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    @property
    def place(self) -> Place:
        place: Place = self.run.checkpoint
        return place

    def fetch(self, listing: Listing) -> ResultPage:
        page, self.session = renewing(
            lambda session: self._get(session, listing), self._session(), self.sessions.renew
        )
        return page

    def look_ahead(self, listing: Listing | None) -> None:
        """Prefetch a page.

        The thread does not use the database: an expired session is renewed when the page is needed.
        """
        if listing is not None and self._ahead is None:
            self._ahead = (
                listing,
                self._thread.submit(self.client.fetch, self._session(), listing),
            )

    def _get(self, session: Session, listing: Listing) -> ResultPage:
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return self.client.fetch(session, listing)
        wanted, future = ahead
        page = future.result()
        return page if wanted == listing else self.client.fetch(session, listing)

    def _session(self) -> Session:
        if self.session is None:
            self.session = self.sessions.current()
        return self.session

    def reopen(self) -> Session:
        self.forget_ahead()
        self.session = self.sessions.reopen()
        return self.session

    def forget_ahead(self) -> None:
        if self._ahead is not None:
            future, self._ahead = self._ahead[1], None
            try:
                future.result()
            except SessionExpired:
                self.session = None

    @contextmanager
    def step(self, place: Place) -> Iterator[Mirror]:
        """Commit rows, counters and the next place together, and only while we hold the tenant's
        lease.
        """
        with transaction.atomic():
            runs.hold(self.connection.pk, self.fence)
            mirror = Mirror(self.connection, self.run.generation, self.run)
            yield mirror
            place = mirror.next_place or place
            counters = self._counters(mirror.counts)
            kept = IBSyncRun.objects.filter(pk=self.run.pk)
            kept.update(
                checkpoint=place, counters=counters, heartbeat_at=timezone.now(), failures=0
            )
        self.run.checkpoint, self.run.counters, self.run.failures = place, counters, 0

    def _counters(self, counts: Counter[str]) -> dict[str, int]:
        calls = int(getattr(self.client.pace, "calls", 0))
        counts["calls"] += calls - self._told_calls
        counts["logins"] += self.sessions.logins
        self._told_calls, self.sessions.logins = calls, 0
        return dict(Counter(self.run.counters) + counts)
