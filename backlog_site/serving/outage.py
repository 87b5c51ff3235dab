"""Track whether the database is unreachable, so that requests fail at once instead of each waiting
for a connection.

The first failure starts a probe in a separate thread. The outage lasts while the probe cannot
connect; the first successful connection ends it. Only PostgreSQL can be unreachable: SQLite is a
file, which is at worst busy.
"""

import threading
import time
from typing import Any

import structlog
from django.db import DatabaseError, connection, connections
from django.db.utils import DEFAULT_DB_ALIAS

PROBE_SECONDS = 1.0
CONNECT_SECONDS = 2
# SQLSTATE classes of a lost connection and of a stopping server. Any other SQLSTATE came from a
# server that answers.
_AWAY = ("08", "57")

logger = structlog.get_logger("backlog.outage")


class Outage:
    def __init__(self) -> None:
        self.is_on = False
        self._lock = threading.Lock()
        self._is_probing = False

    def suspect(self, error: BaseException) -> None:
        """Start a probe, unless the error shows that the database answers."""
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
    """Return whether the database accepts a connection outside the pool, which waits longer."""
    probe: Any = connections.create_connection(DEFAULT_DB_ALIAS)
    options = {
        name: value for name, value in probe.settings_dict["OPTIONS"].items() if name != "pool"
    }
    probe.settings_dict = {
        **probe.settings_dict,
        "OPTIONS": options | {"connect_timeout": CONNECT_SECONDS},
    }
    try:
        probe.ensure_connection()
    except DatabaseError:
        return False
    finally:
        probe.close()
    return True


outage = Outage()
