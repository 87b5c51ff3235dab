"""Write to the backlog.

One transaction holds row, revision and change; every adapter, job and command uses this module.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import IntegrityError, OperationalError, transaction
from django.db.models import F, ProtectedError
from django.db.models.functions import Greatest

from resources_app.addresses import uris
from resources_app.addresses.targets import Target, only_read
from resources_app.errors import (
    Conflict,
    InvalidUri,
    PermissionDenied,
    Unavailable,
    ValidationFailed,
)
from resources_app.fields.declarations import empty_values
from resources_app.files import folders
from resources_app.history import change_log
from resources_app.history.documents import clean_changes, columns_for, uri_of
from resources_app.history.preconditions import Preconditions
from resources_app.identity.roles import Actor
from resources_app.models import Change, Comment, Epic, Resource, Revision, Sequence, Task
from resources_app.models.base import Versioned
from resources_app.querying import counters
from resources_app.reading.registry import REGISTRY, target_of
from resources_app.vocabulary import Kind
from resources_app.writing.edits import Edit
from resources_app.writing.session import (
    WriteSession,
    refuse_mirrored,
    refuse_read_only,
    refuse_words_of_others,
)

# PostgreSQL checks references at commit. SQLite has one writer at a time, so nothing can vanish
# there.
FOREIGN_KEY_VIOLATION = "23503"
DISK_FULL = ("53100", sqlite3.SQLITE_FULL)


@contextmanager
def write_transaction() -> Iterator[None]:
    """Open a write transaction.

    A busy or lost database raises Unavailable, and nothing of the write remains.
    """
    try:
        with transaction.atomic():
            yield
    except OperationalError as error:
        if getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR:
            raise  # a wrong statement, such as one for another schema; see schema.py
        raise _refusal(error) from error
    except IntegrityError as error:
        if getattr(error.__cause__, "sqlstate", "") != FOREIGN_KEY_VIOLATION:
            raise
        raise Conflict(
            "Something this write refers to was deleted at the same moment; nothing was written."
        ) from error


def _refusal(error: OperationalError) -> Unavailable:
    cause = error.__cause__
    if getattr(cause, "sqlstate", getattr(cause, "sqlite_errorcode", None)) in DISK_FULL:
        return Unavailable(
            "The disk of the database is full; nothing was written.",
            suggestion="Free disk space on the server, then retry.",
        )
    return Unavailable("The database is busy or unreachable; nothing was written.")


def written_target(uri: Any) -> Target:
    """Return the target of a write.

    Raises InvalidOperation, not InvalidUri, for a URI that is valid but read-only.
    """
    parsed = uris.parse(uri)
    try:
        return target_of(parsed)
    except InvalidUri:
        if parsed.fragment or REGISTRY.match(parsed) is None:
            raise
        raise only_read(parsed) from None


def create_item(
    actor: Actor,
    kind: str,
    values: dict[str, Any],
    *,
    number: int | None = None,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    extra: dict[str, Any] | None = None,
) -> Task | Epic:
    """Create a task or epic.

    Importers keep the number, the times and the keys that have no field.
    """
    model = Task if kind == Kind.TASK else Epic
    document = empty_values(kind) | clean_changes(kind, {"title": None, **values})
    with write_transaction():
        session = WriteSession(actor)
        columns = columns_for(actor, kind, document)
        item = model(number=_allocate(model.PREFIX, number), extra=extra or {}, **columns)
        if created_at:
            item.created_at, item.updated_at = created_at, updated_at or created_at
        session.insert(item, document)
    return item


def add_comment(
    actor: Actor, item_uri: str, body: Any, *, created_at: datetime | None = None
) -> Comment:
    cleaned = clean_changes(Kind.COMMENT, {"body": body})
    target = written_target(item_uri)
    if target.kind not in (Kind.TASK, Kind.EPIC) or target.field:
        raise ValidationFailed("Comments belong to a task or an epic.", field="uri", value=item_uri)
    with write_transaction():
        session = WriteSession(actor)
        item = session.lock(target)
        refuse_read_only(item)
        author = actor.user if actor.user.pk else None
        comment = Comment(**{target.kind: item}, author=author, agent=actor.agent, **cleaned)
        if created_at:
            comment.created_at = created_at
        session.insert(comment, {})
    return comment


# An ETag, or all preconditions of a request.
Etag = str | Preconditions | None


def write(
    actor: Actor, uri: str, operation: Any, etag: Etag = None, *, dry_run: bool = False
) -> dict[str, Any]:
    target = written_target(uri)
    with write_transaction():
        answer = WriteSession(actor, dry_run=dry_run).apply(target, uri, operation, etag)
        transaction.set_rollback(dry_run)
    return answer


def archive(actor: Actor, uri: str, etag: Etag = None) -> Versioned:
    return _set_archived(actor, uri, actor.moment, etag)


def unarchive(actor: Actor, uri: str, etag: Etag = None) -> Versioned:
    return _set_archived(actor, uri, None, etag)


def delete_permanently(actor: Actor, uri: str, etag: Etag = None) -> None:
    """Delete the row and its texts for good. The audit trail records the deletion. Admins only."""
    if not actor.is_admin:
        raise PermissionDenied("Only admins delete permanently.", suggestion="Archive it instead.")
    target = _whole(uri)
    with write_transaction():
        session = WriteSession(actor)
        thing = session.lock(target)
        session.check_etag(thing, target, etag)
        address, comments = uri_of(thing), _comments_on(thing)
        _delete_row(thing)
        if isinstance(thing, Resource):
            folders.prune(thing.folder)
        _erase_texts(thing.KIND, [thing.pk])
        _erase_texts(Kind.COMMENT, comments)
        thing.version += 1
        deletion = change_log.make_change(
            actor, thing, uri=address, action="delete", fields=[], operation={"type": "delete"}
        )
        change_log.record([(deletion, thing)])


def _set_archived(actor: Actor, uri: str, at: datetime | None, etag: Etag) -> Versioned:
    target = _whole(uri)
    with write_transaction():
        session = WriteSession(actor)
        thing = session.lock(target)
        session.check_etag(thing, target, etag)
        if at and thing.archived_at:
            return thing
        refuse_mirrored(thing)
        refuse_words_of_others(actor, thing)
        if isinstance(thing, Resource) and at is None:
            folders.refuse_clash(actor.user, thing.path)
        action = "archive" if at else "unarchive"
        edit = Edit({"type": action}, internal={"archived_at": at.isoformat() if at else None})
        session.save(thing, edit, uri=uri_of(thing), action=action)
    return thing


def _whole(uri: str) -> Target:
    target = written_target(uri)
    if target.field and target.kind != Kind.COMMENT:
        raise ValidationFailed(
            "Only whole things can be archived or deleted.", field="uri", value=uri
        )
    return target


def _comments_on(thing: Versioned) -> list[int]:
    return (
        list(thing.comments.values_list("pk", flat=True)) if isinstance(thing, Task | Epic) else []
    )


def _erase_texts(kind: str, numbers: list[int]) -> None:
    Revision.objects.filter(kind=kind, object_id__in=numbers).delete()
    Change.objects.filter(kind=kind, object_id__in=numbers).update(operation={})


def _delete_row(thing: Versioned) -> None:
    try:
        type(thing)._base_manager.filter(pk=thing.pk).delete()
        counters.move(counters.place_of(thing), None)
    except ProtectedError as error:
        users = sorted(
            {str(getattr(row, "task", row)).split()[0] for row in error.protected_objects}
        )[:20]
        raise ValidationFailed(
            f"{thing.ref} is still needed by {', '.join(users)}.",
            suggestion="Move or delete those first, or archive instead.",
            needed_by=users,
        ) from error


def _allocate(prefix: str, wanted: int | None) -> int:
    """Allocate a number.

    The counter's row lock makes numbers unique, even against an import with given numbers.
    """
    counter = Sequence.objects.filter(prefix=prefix)
    counter.update(last=F("last") + 1 if wanted is None else Greatest(F("last"), wanted))
    return counter.values_list("last", flat=True).get() if wanted is None else wanted
