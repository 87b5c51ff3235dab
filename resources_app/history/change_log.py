"""Record changes: actor, action, time and channel. The rows are both audit trail and feed.

A row is written in the transaction of the write it describes. PostgreSQL assigns ids before commit,
so reading "everything after id N" would skip a transaction that commits late. The feed is ordered
by positions instead, which the sequencer assigns to committed rows; see sequencing.py.
"""

import datetime
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.db import connection, transaction
from django.db.models import BigIntegerField, Func
from django.utils import timezone

from resources_app.history import sequencing
from resources_app.history.sequencing import SEQUENCED, Position
from resources_app.identity.roles import Actor, Person
from resources_app.models import Change, IBFolder, IBResource
from resources_app.models.base import Versioned
from resources_app.vocabulary import Via

MAX_SUMMARY = 200
# Column size. Callers choose their request ids.
MAX_REQUEST_ID = 64
MAX_CLIENT = 150

# Called inside the transaction after the row is written. An index that follows writes registers
# here.
Listener = Callable[[Change, Versioned], None]
_listeners: list[Listener] = []
# Called with all changes that were recorded together, such as those of a batch.
Recorded = tuple[Change, Versioned]
GroupListener = Callable[[Sequence[Recorded]], None]
_group_listeners: list[GroupListener] = []
_held: ContextVar[list[Recorded] | None] = ContextVar("held", default=None)


class _CurrentTransaction(Func):
    """Return the transaction id, by which processes of the previous release order the feed during
    an upgrade.
    """

    template = "pg_current_xact_id()::text::bigint"
    output_field = BigIntegerField()


def listen(listener: Listener) -> None:
    _listeners.append(listener)


def listen_to_groups(listener: GroupListener) -> None:
    _group_listeners.append(listener)


def make_change(
    actor: Actor,
    thing: Versioned,
    *,
    uri: str,
    action: str,
    fields: list[str],
    operation: dict[str, Any],
    batch: uuid.UUID | None = None,
    at: datetime.datetime | None = None,
) -> Change:
    """Return the change that describes the current version of an object, not yet saved."""
    return Change(
        txid=_CurrentTransaction() if connection.vendor == "postgresql" else 0,
        kind=thing.KIND,
        object_id=thing.pk,
        ref=thing.ref,
        uri=uri,
        version=thing.version,
        action=action,
        fields=fields,
        operation=_summary(operation),
        author=actor.user if actor.user.pk else None,
        via=actor.via,
        agent=actor.agent,
        client=actor.client[:MAX_CLIENT],
        scope=actor.scope if actor.client else "",
        address=actor.address or None,
        batch=batch,
        request_id=actor.request_id[:MAX_REQUEST_ID],
        created_at=at or actor.moment,
    )


def record(recorded: Sequence[Recorded]) -> None:
    """Save changes in the given order and call the listeners once for all of them."""
    if not recorded:
        return
    Change.objects.bulk_create(change for change, _ in recorded)
    sequencing.follow_write()
    if (held := _held.get()) is None:
        _call_listeners(recorded)
    else:
        held[:] = recorded[-1:]


def _call_listeners(recorded: Sequence[Recorded]) -> None:
    for change, thing in recorded:
        for listener in _listeners:
            listener(change, thing)
    for group_listener in _group_listeners:
        group_listener(recorded)


@contextmanager
def listeners_called_once() -> Iterator[None]:
    """Call the listeners when the block ends, for its last change only.

    Used for many comments on one item, where each call would reindex all of them. The block may
    span several transactions; the listeners run in a separate one. A kill before that leaves the
    index stale until the sweep repairs it.
    """
    held: list[Recorded] = []
    token = _held.set(held)
    try:
        yield
    finally:
        _held.reset(token)
        with transaction.atomic():
            _call_listeners(held)


# Mirrored rows are written a page at a time and have neither author nor revisions.
Mirrored = IBFolder | IBResource
MirrorListener = Callable[[list[Mirrored]], None]
_mirror_listeners: list[MirrorListener] = []


def listen_to_mirror(listener: MirrorListener) -> None:
    _mirror_listeners.append(listener)


def follow_mirror(things: Sequence[Mirrored]) -> None:
    """Notify the mirror listeners inside the transaction that wrote the rows."""
    for listener in _mirror_listeners:
        listener(list(things))


def record_mirrored(entries: Sequence[tuple[Mirrored, str, str, list[str]]]) -> None:
    """Record a page of mirrored changes with one statement.

    Each entry is (object, uri, action, ids of its current and former folders).
    """
    now = timezone.now()
    Change.objects.bulk_create(
        Change(
            txid=_CurrentTransaction() if connection.vendor == "postgresql" else 0,
            kind=thing.KIND,
            object_id=thing.pk,
            ref=thing.ref,
            uri=uri,
            version=thing.version,
            action=action,
            operation={"folders": sorted(set(folders))},
            via=Via.SYNC,
            created_at=now,
        )
        for thing, uri, action, folders in entries
    )
    sequencing.follow_write()


def feed(user: Person, since: str, limit: int) -> tuple[list[Change], str]:
    """Return the changes after a cursor, oldest first, and the next cursor.

    No change is ever skipped.
    """
    start = Position.parse(since, "since") if since else Position(SEQUENCED, 0)
    sequencing.sequence()
    number = sequencing.resolve(start)
    rows = Change.objects.visible_to(user).after(number).select_related("author")
    page = list(rows[:limit])
    if page:
        return page, str(sequencing.position_of(page[-1]))
    return page, str(Position(SEQUENCED, number)) if since else ""


def _summary(operation: Any) -> Any:
    """Shorten an operation for display. The revision has the full text."""
    if isinstance(operation, str):
        return operation if len(operation) <= MAX_SUMMARY else operation[:MAX_SUMMARY] + "…"
    if isinstance(operation, dict):
        return {str(key): _summary(value) for key, value in operation.items()}
    if isinstance(operation, list):
        return [_summary(entry) for entry in operation[:20]]
    return operation
