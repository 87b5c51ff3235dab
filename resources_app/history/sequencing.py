"""Feed positions: the sequencer gives them to committed changes, in an order that every reader can rely on.

A change is committed without a position. The first reader afterwards positions all committed changes that have none,
under one lock that it holds until its own commit. A later pass therefore sees everything that an earlier pass saw, and
its positions are higher: a reader that remembers the last position it saw never skips a change that commits late. Only
this database's own lock is waited for, never the transactions of other writers or of other databases of the server.

Inside a pass changes are ordered by id. This keeps the versions of one thing in order because a writer draws the id of
a change after it has locked the row of the thing (`WriteSession.save` updates the row first, `insert` has just made it,
a deletion locks it), and holds that lock until it commits. So a higher version of a thing has a higher id, and it is
never visible without the versions below it: the visible part of a thing's history is a prefix. The version itself would
not do as the order, since deleting a thing records a change without a new version.

On SQLite the writer holds the only write lock of the database. It runs the same pass in its own transaction, so that
readers find nothing to do; they position only what a process of an older release wrote.
"""

from typing import NamedTuple

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import Min, Q

from resources_app.errors import ValidationFailed
from resources_app.models import Change

# The first part of a cursor. Older releases put a transaction id there, which is always lower. A process of an older
# release, still running during an upgrade, takes this for a transaction of the far future: it answers with nothing new
# and leaves the cursor as it is.
SEQUENCED = 10**15
CHUNK = 1000
# One reader positions at most this many chunks; the next one goes on.
MAX_PASSES = 20
# Names the sequencer's lock among the advisory locks of the database.
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
    """A place in the change feed. As text it is the feed's cursor."""

    numbering: int
    number: int

    def __str__(self) -> str:
        return f"{self.numbering}.{self.number}"

    @classmethod
    def parse(cls, cursor: str, field: str = "position") -> "Position":
        """Raise ValidationFailed for text that is not a cursor."""
        parts = cursor.split(".")
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
            raise _unknown(cursor, field)
        position = cls(int(parts[0]), int(parts[1]))
        if position.numbering > SEQUENCED:
            raise _unknown(cursor, field)
        return position


def _unknown(cursor: str, field: str) -> ValidationFailed:
    return ValidationFailed(f"{field} must be a cursor from an earlier answer.", field=field, value=cursor)


def position_of(change: Change) -> Position:
    """Return the place of a change that the feed has shown."""
    return Position(SEQUENCED, change.position or 0)


def sequence() -> bool:
    """Position the committed changes that have no position. Return False when some are left for the next reader.

    A reader must not fail because the database is busy: it then reads what has a position already.
    """
    try:
        return not _is_pending() or _run_passes()
    except DatabaseError as error:
        logger.warning("changes_not_sequenced", reason=str(error))
        return False


def follow_write() -> None:
    """Run a pass inside the transaction of a writer that no other writer can overlap. See the top of this module."""
    if connection.vendor == "sqlite":
        _assign()


def _is_pending() -> bool:
    return Change.objects.filter(position__isnull=True).order_by("position", "id").exists()


def _run_passes() -> bool:
    run_pass = _pass_on_postgresql if connection.vendor == "postgresql" else _pass_on_sqlite
    return any(run_pass() < CHUNK for _ in range(MAX_PASSES))


def _pass_on_postgresql() -> int:
    """Wait for the pass of another reader, then position what is left, with a view of the database of its own."""
    patience = "" if connection.in_atomic_block else f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}; "
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"{patience}SELECT pg_advisory_xact_lock({LOCK_KEY})")
        return _assign()


def _pass_on_sqlite() -> int:
    """Do not wait for a writer: its commit runs a pass of its own."""
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
    """One statement positions up to a chunk of changes. Return how many."""
    with connection.cursor() as cursor:
        cursor.execute(ASSIGN, [CHUNK])
        return int(cursor.rowcount)


def newest_number() -> int:
    """Return the highest position, 0 for an empty feed."""
    rows = Change.objects.filter(position__isnull=False).order_by("-position")
    return rows.values_list("position", flat=True).first() or 0


def resolve(position: Position) -> int:
    """Return the number after which the feed goes on.

    A cursor of an older release is a transaction id and a change id, in the order of that release. Its reader may not
    have seen a change with a higher transaction id, nor one with a higher id. The feed goes on before the first of
    these: it repeats a change rather than skip one.
    """
    if position.numbering == SEQUENCED:
        return position.number
    unseen = Change.objects.filter(Q(txid__gt=position.numbering) | Q(id__gt=position.number), position__isnull=False)
    first: int | None = unseen.aggregate(first=Min("position"))["first"]
    return newest_number() if first is None else first - 1
