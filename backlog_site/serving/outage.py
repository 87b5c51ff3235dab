"""Knows that the database is unreachable, so that requests are refused at once instead of waiting for a connection each.

The first failure starts a probe in a thread of its own. While the probe cannot connect, the outage lasts; the first
connection that succeeds ends it. Only PostgreSQL can be away: SQLite is a file, which is busy at most.
"""

import threading
import time
from typing import Any

import structlog
from django.db import DatabaseError, connection, connections
from django.db.utils import DEFAULT_DB_ALIAS

PROBE_SECONDS = 1.0
CONNECT_SECONDS = 2
# SQLSTATE classes of a lost connection and of a server that stops. An error with another one came from a server that answers.
_AWAY = ("08", "57")

logger = structlog.get_logger("backlog.outage")


class Outage:
    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.Lock()
        self._is_probing = False

    def suspect(self, error: BaseException) -> None:
        """Start to probe, unless the error shows that the database answers."""
        state = getattr(error.__cause__, "sqlstate", None)
        if connection.vendor != "postgresql" or (state and not state.startswith(_AWAY)):
            return
        with self._lock:
            if self._is_probing:
                return
            self._is_probing = True
        threading.Thread(target=self._probe, name="outage-probe", daemon=True).start()

    def _probe(self) -> None:
        try:
            while not _answers():
                if not self.is_on:
                    logger.warning("database_away")
                self.is_on = True
                time.sleep(PROBE_SECONDS)
            if self.is_on:
                logger.warning("database_back")
        finally:
            self.is_on = self._is_probing = False


def _answers() -> bool:
    """Over a connection beside the pool, which waits for longer."""
    probe: Any = connections.create_connection(DEFAULT_DB_ALIAS)
    options = {name: value for name, value in probe.settings_dict["OPTIONS"].items() if name != "pool"}
    probe.settings_dict = {**probe.settings_dict, "OPTIONS": options | {"connect_timeout": CONNECT_SECONDS}}
    try:
        probe.ensure_connection()
    except DatabaseError:
        return False
    finally:
        probe.close()
    return True


outage = Outage()
