"""Assign feed positions to committed changes, in an order that every reader can rely on.

A change is committed without a position. The next reader assigns positions to all committed changes
without one, under a lock held until the reader commits. A later pass therefore sees everything that
an earlier pass saw and assigns higher positions, so a reader that remembers its last position never
skips a change that commits late. Readers wait only for this lock, never for the transactions of
other writers or of other databases on the server.

Within a pass, changes are ordered by id. This keeps the versions of one object in order because a
writer draws the id of a change after locking the object's row (`WriteSession.save` updates the row
first, `insert` has just created it, a deletion locks it), and holds that lock until it commits. A
higher version of an object therefore has a higher id and is never visible without the versions
below it: the visible part of an object's history is a prefix. The version itself cannot be the
order because deleting an object records a change without a new version.

On SQLite the writer holds the only write lock of the database. It runs the same pass in its own
transaction, so readers find nothing to do. They position only the changes written by a process of
an older release.
"""

from typing import NamedTuple

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import Min, Q

from resources_app.errors import ValidationFailed
from resources_app.models import Change

# First part of a cursor. Older releases put a transaction id there, which is always lower. A
# process of an older release that runs during an upgrade reads this value as a transaction of the
# far future: it returns nothing new and leaves the cursor unchanged.
SEQUENCED = 10**15
CHUNK = 1000
# A reader processes at most this many chunks; the next reader continues.
MAX_PASSES = 20
# Key of the sequencer's lock among the advisory locks of the database.
LOCK_KEY = 0x6261636B6C6F67
LOCK_MILLISECONDS = 2000

ASSIGN = """
UPDATE resources_app_change SET position = numbered.place
FROM (
    SELECT id, row_number() OVER (ORDER BY id) + (
        SELECT COALESCE(MAX(position), 0) FROM resources_app_change WHERE position IS NOT NULL
    ) AS place
    FROM (
        SELECT id FROM resources_app_change WHERE position IS NULL ORDER BY position, id LIMIT %s
    ) AS pending
) AS numbered
WHERE resources_app_change.id = numbered.id
"""

logger = structlog.get_logger("backlog.feed")


class Position(NamedTuple):
    """Represent a place in the change feed. Its text form is the feed's cursor."""

    numbering: int
    number: int

    def __str__(self) -> str:
        return f"{self.numbering}.{self.number}"

    @classmethod
    def parse(cls, cursor: str, field: str = "position") -> "Position":
        """Parse a cursor. Raises ValidationFailed for any other text."""
        parts = cursor.split(".")
        if len(parts) != 2 or not all(
            part.isascii() and part.isdigit() and len(part) < 19 for part in parts
        ):
            raise _unknown(cursor, field)
        position = cls(int(parts[0]), int(parts[1]))
        if position.numbering > SEQUENCED:
            raise _unknown(cursor, field)
        return position


def _unknown(cursor: str, field: str) -> ValidationFailed:
    return ValidationFailed(
        f"{field} must be a cursor from an earlier answer.", field=field, value=cursor
    )


def position_of(change: Change) -> Position:
    """Return the position of a change that the feed has shown."""
    return Position(SEQUENCED, change.position or 0)


def sequence() -> bool:
    """Assign positions to committed changes. Return False if some are left for the next reader.

    A reader must not fail because the database is busy. In that case it reads the changes that
    already have a position.
    """
    try:
        return not _is_pending() or _run_passes()
    except DatabaseError as error:
        logger.warning("changes_not_sequenced", reason=str(error))
        return False


def follow_write() -> None:
    """Run a pass inside the writer's transaction on SQLite, where writers never overlap.

    See the module docstring.
    """
    if connection.vendor == "sqlite":
        _assign()


def _is_pending() -> bool:
    return Change.objects.filter(position__isnull=True).order_by("position", "id").exists()


def _run_passes() -> bool:
    run_pass = _pass_on_postgresql if connection.vendor == "postgresql" else _pass_on_sqlite
    return any(run_pass() < CHUNK for _ in range(MAX_PASSES))


def _pass_on_postgresql() -> int:
    """Wait for another reader's pass, then position the remaining changes with a fresh snapshot of
    the database.
    """
    patience = (
        "" if connection.in_atomic_block else f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}; "
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{patience}SELECT pg_advisory_xact_lock({LOCK_KEY})")
        return _assign()


def _pass_on_sqlite() -> int:
    """Run a pass without waiting for a writer, whose commit runs a pass anyway."""
    if connection.in_atomic_block:
        return _assign()
    patience = connection.settings_dict["OPTIONS"].get("timeout", 5)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 0")
        try:
            return _assign()
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")


def _assign() -> int:
    """Position up to a chunk of changes with one statement and return their number."""
    with connection.cursor() as cursor:
        cursor.execute(ASSIGN, [CHUNK])
        return int(cursor.rowcount)


def newest_number() -> int:
    """Return the highest position, or 0 for an empty feed."""
    rows = Change.objects.filter(position__isnull=False).order_by("-position")
    return rows.values_list("position", flat=True).first() or 0


def resolve(position: Position) -> int:
    """Return the number after which the feed continues.

    A cursor of an older release is a transaction id and a change id, in that release's order. Its
    reader may have missed changes with a higher transaction id or a higher change id. The feed
    continues before the first of these: repeating a change is better than skipping one.
    """
    if position.numbering == SEQUENCED:
        return position.number
    unseen = Change.objects.filter(
        Q(txid__gt=position.numbering) | Q(id__gt=position.number), position__isnull=False
    )
    first: int | None = unseen.aggregate(first=Min("position"))["first"]
    return newest_number() if first is None else first - 1
