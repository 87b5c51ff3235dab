"""Serve many SQLite writers: a process lets its threads request the write lock one at a time, in
FIFO order.

If all requested it at once, the order would be random, and one in twenty would wait three times as
long as the rest.
"""

import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db.backends.sqlite3 import base

# Pause between two attempts. Random, so that another process does not always come too late.
SHORTEST_NAP, LONGEST_NAP = 0.0005, 0.003
# SQLite's extended error codes carry the primary code in their lowest byte.
PRIMARY_CODE = 0xFF
# A connection that was sent a text of this length is closed after the request.
LARGE_TEXT = 256 * 1024


class FifoLock:
    """Queue threads in FIFO order; a plain lock guarantees no order."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @contextmanager
    def taken(self, deadline: float) -> Iterator[None]:
        """Hold a turn. A thread that times out proceeds too and gets "locked" from the database."""
        mine = threading.Event()
        with self._lock:
            self._waiting.append(mine)
            self._waiting[0].set()
        try:
            mine.wait(max(deadline - time.monotonic(), 0))
            yield
        finally:
            with self._lock:
                self._waiting.remove(mine)
                if self._waiting:
                    self._waiting[0].set()


WRITE_QUEUE = FifoLock()


class Cursor(base.SQLiteCursorWrapper):
    """Note texts so large that the connection should not outlive the request.

    sqlite3 keeps prepared statements with the last parameters bound to them. With texts of 2 MB
    each thread would hold 6 MB.
    """

    wrapper: "DatabaseWrapper"

    def execute(self, query: Any, params: Any = None) -> Any:
        if params and any(type(value) is str and len(value) > LARGE_TEXT for value in params):
            self.wrapper.holds_large_text = True
        return super().execute(query, params)


class DatabaseWrapper(base.DatabaseWrapper):
    holds_large_text = False

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = self.connection.cursor(factory=Cursor)
        cursor.wrapper = self
        return cursor

    def close_if_unusable_or_obsolete(self) -> None:
        if self.holds_large_text and not self.in_atomic_block:
            self.holds_large_text = False
            self.close()
        super().close_if_unusable_or_obsolete()

    def _start_transaction_under_autocommit(self) -> None:
        """Begin a transaction by polling.

        SQLite's busy handler backs off to 100 ms, so it starves among writers that retry at once.
        """
        patience = self.settings_dict["OPTIONS"].get("timeout", 5)
        deadline = time.monotonic() + patience
        with WRITE_QUEUE.taken(deadline), self._without_waiting(patience):
            while not self._begins() and time.monotonic() < deadline:
                time.sleep(random.uniform(SHORTEST_NAP, LONGEST_NAP))  # noqa: S311  # no secret
            if not self.connection.in_transaction:
                super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs do not know it

    @contextmanager
    def _without_waiting(self, patience: float) -> Iterator[None]:
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            yield
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")

    def _begins(self) -> bool:
        try:
            self.connection.execute(f"BEGIN {self.transaction_mode or ''}")  # type: ignore[attr-defined]  # the same
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE not in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_LOCKED,
            ):
                raise
        return bool(self.connection.in_transaction)
