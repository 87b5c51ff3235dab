"""SQLite for many writers: they wait for the write lock in short, uneven naps, so that none of them starves."""

import random
import sqlite3
import time

from django.db.backends.sqlite3 import base

SHORTEST_NAP, LONGEST_NAP = 0.001, 0.02
# SQLite's extended error codes carry the plain one in their lowest byte.
PRIMARY_CODE = 0xFF


class DatabaseWrapper(base.DatabaseWrapper):
    def _start_transaction_under_autocommit(self) -> None:
        """SQLite's own waiting backs off to 100 ms a time; among writers who return at once, such a sleeper never wins."""
        patience = self.settings_dict["OPTIONS"].get("timeout", 5)
        deadline = time.monotonic() + patience
        self.connection.execute("PRAGMA busy_timeout = 0")
        try:
            while not self._begins() and time.monotonic() < deadline:
                time.sleep(random.uniform(SHORTEST_NAP, LONGEST_NAP))  # noqa: S311  # no secret
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
        if not self.connection.in_transaction:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # the stubs do not know it

    def _begins(self) -> bool:
        try:
            self.connection.execute(f"BEGIN {self.transaction_mode or ''}")  # type: ignore[attr-defined]  # the same
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
        return bool(self.connection.in_transaction)
