"""Run writes in one transaction.

Rows are locked once, each operation sees the previous ones, and each is recorded.
"""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import F, Func, TextField, Value
from django.db.models.functions import Cast, Concat

from resources_app.addresses import uris
from resources_app.addresses.hidden_refs import Mask
from resources_app.addresses.targets import Target, fetch, fetch_all, only_read
from resources_app.errors import BacklogError, Conflict, NotFound, PermissionDenied
from resources_app.files import folders
from resources_app.files.contents import derived_columns, facts_following
from resources_app.history import change_log, revisions
from resources_app.history.documents import (
    MODELS,
    clean_changes,
    columns_for,
    document_of,
    named_by,
    uri_of,
)
from resources_app.history.etags import make_etag, normalise, version_in
from resources_app.history.preconditions import Preconditions, preconditions
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.models import Change, Comment, Resource
from resources_app.models.base import Versioned
from resources_app.querying import counters
from resources_app.vocabulary import Kind
from resources_app.writing import relations
from resources_app.writing.edits import Edit, make_edit
from resources_app.writing.restricting import refuse_restricting
from resources_app.writing.results import describe_change, outcome_of

Record = tuple[Change, Versioned, revisions.Delta, Document | None]


class WriteSession:
    """Apply writes inside one database transaction, which the caller opens and closes."""

    def __init__(
        self,
        actor: Actor,
        batch: uuid.UUID | None = None,
        *,
        dry_run: bool = False,
        atomic: bool = False,
    ) -> None:
        if not actor.may_write:
            raise PermissionDenied(
                "You may read but not write.",
                suggestion="Ask an admin for the contributor role or a write token.",
            )
        self.actor = actor
        self.mask = Mask(actor.user)
        self.batch = batch
        self.dry_run, self.atomic = dry_run, atomic
        self._things: dict[tuple[str, Any], Versioned] = {}
        self._as_stored: dict[tuple[str, Any], tuple[int, dict[str, int]]] = {}
        self._pending: list[Record] = []
        self._records_together = False

    def lock(self, target: Target) -> Versioned:
        key = (target.kind, target.lookup)
        if key not in self._things:
            self._keep(key, self._fetch_locked(target))
        return self._things[key]

    def _keep(self, key: tuple[str, Any], thing: Versioned) -> None:
        self._things[key] = thing
        self._as_stored.setdefault(key, (thing.version, thing.field_versions))

    def _fetch_locked(self, target: Target) -> Versioned:
        rows = MODELS[target.kind].objects.visible_to(self.actor.user)
        try:
            _lock_rows(rows, target.kind, *target.lookup)
            return fetch(rows, target)
        except NotFound:
            if target.kind == Kind.RESOURCE and folders.is_only_read(
                self.actor.user, target.lookup[1]
            ):
                raise only_read(uris.build_path(target.lookup[1])) from None
            raise

    def lock_all(self, targets: Iterable[Target]) -> None:
        """Lock in a fixed order: two batches over the same rows wait for each other instead of
        deadlocking.

        Rows that are absent or invisible are left out. The operation on them reports it.
        """
        values: dict[tuple[str, str], set[Any]] = defaultdict(set)
        for target in targets:
            column, value = target.lookup
            values[target.kind, column].add(value)
        for (kind, column), wanted in sorted(values.items()):
            rows = MODELS[kind].objects.visible_to(self.actor.user)
            _lock_rows(rows, kind, column, *wanted)
            for value, thing in fetch_all(rows, kind, column, wanted).items():
                self._keep((kind, (column, value)), thing)
        self.mask.look_up(map(named_by, self._things.values()))

    @contextmanager
    def recording_together(self) -> Iterator[None]:
        """Record the writes of the block when it ends, with one statement per table.

        The listeners, and with them the search index, follow once.
        """
        self._records_together = True
        yield
        self._records_together = False
        self._record_pending()

    @contextmanager
    def savepoint(self, target: Target) -> Iterator[None]:
        """Undo an operation that fails, in the database, in its object and in what is to be
        recorded.
        """
        pending = list(self._pending)
        try:
            with transaction.atomic():
                yield
        except BacklogError:
            self._pending = pending
            for change, *_ in pending:
                change.pk = None  # recorded by the operation that failed, and so rolled back
            if thing := self._things.get((target.kind, target.lookup)):
                thing.refresh_from_db()
            raise

    def apply(self, target: Target, uri: str, operation: Any, etag: Any = None) -> dict[str, Any]:
        thing = self.lock(target)
        refuse_read_only(thing)
        refuse_words_of_others(self.actor, thing)
        self.check_etag(thing, target, etag)
        stored = document_of(thing)
        before = self.mask.shown(stored)
        edit = self._edit(thing, target, before, operation)
        after = self.mask.shown(
            self.save(thing, edit, uri=address_of(thing, target), action="update", document=stored)
        )
        answer = outcome_of(
            thing, target, uri, before, after, edit.splices_to(after), asked=set(edit.changed)
        )
        return answer | {"etag": self._stored_etag(thing, target)} if self.dry_run else answer

    def _edit(self, thing: Versioned, target: Target, document: Document, operation: Any) -> Edit:
        """Edit the document as the caller sees it: a hidden id can be kept or removed, not
        guessed.
        """
        is_restored = isinstance(operation, dict) and operation.get("type") == "restore"
        if is_restored:
            self._record_pending()  # the version may be one that this session wrote
        edit = make_edit(thing, target, document, operation)
        return replace(edit, changed=self.mask.shown(edit.changed)) if is_restored else edit

    def save(
        self,
        thing: Versioned,
        edit: Edit,
        *,
        uri: str,
        action: str,
        document: Document | None = None,
    ) -> Document:
        """Write the changes of an edit, or nothing if there are none.

        `document` is the current document of the object, if the caller has it. Return the document
        after the edit.
        """
        before = document_of(thing) if document is None else document
        cleaned = (
            self.mask.restored(before, clean_changes(thing.KIND, edit.changed)) | edit.internal
        )
        text = cleaned.get("content")
        if isinstance(thing, Resource) and isinstance(text, str):
            cleaned |= facts_following(thing.path, before, cleaned)
        after = before | cleaned
        changed = {name: value for name, value in cleaned.items() if before.get(name) != value}
        if not changed:
            return before
        if "groups" in changed:
            refuse_restricting(self.actor, thing)
        delta = revisions.make_delta(before, after, edit.splices_to(after), thing.KIND)
        columns = columns_for(self.actor, thing.KIND, changed)
        if isinstance(thing, Resource) and isinstance(text, str):
            columns |= derived_columns(thing.path, text)
        place = counters.place_of(thing)
        snapshot = self._update_row(thing, columns, sorted(changed), delta, after)
        counters.move(place, counters.place_of(thing))
        relations.follow(self.actor, thing, changed)
        self._record(
            thing, uri, action, sorted(changed), edit.operation, delta, snapshot, thing.updated_at
        )
        return after

    def insert(
        self, thing: Versioned, document: Document, *, uri: str | None = None, operation: Any = None
    ) -> None:
        """Insert a new row, its related rows, and the first revision, which is a snapshot."""
        at = None if thing.created_at else self.actor.moment
        if at:
            thing.created_at = at
        thing.updated_at = thing.updated_at or thing.created_at
        thing.save(force_insert=True)
        counters.move(None, counters.place_of(thing))
        relations.follow(
            self.actor, thing, {name: value for name, value in document.items() if value}
        )
        whole = document_of(thing)
        fields = [name for name, value in whole.items() if value]
        self._record(
            thing,
            uri or uri_of(thing),
            "create",
            fields,
            operation or {"type": "create"},
            {},
            whole,
            at,
        )

    def check_etag(self, thing: Versioned, target: Target, etag: Any) -> None:
        """Check an ETag or Preconditions. Raises Conflict if they do not hold."""
        current, conditions = current_etag(thing, target), preconditions(etag)
        if conditions.is_stale(current, thing.updated_at):
            self._refuse_stale(thing, target, conditions)
        if conditions.is_excluded(current):
            raise Conflict(
                f"If-None-Match excludes the current state of {address_of(thing, target)}.",
                suggestion=(
                    "Choose another address, or send the current ETag with If-Match to replace what"
                    " is there."
                ),
                current_etag=current,
                current_version=thing.version,
                diff=None,
            )

    def _refuse_stale(self, thing: Versioned, target: Target, conditions: Preconditions) -> None:
        if conditions.if_match and current_etag(thing, target) in conditions.if_match.weak:
            raise Conflict(
                "If-Match takes strong ETags; a weak one never matches.",
                suggestion="Send the ETag without W/.",
                current_etag=current_etag(thing, target),
                current_version=thing.version,
                diff=None,
            )
        self._record_pending()  # the diff may start at a version that this session wrote
        versions = [version_in(tag, thing.ref, target.etag_field) for tag in conditions.tags]
        known = max((version for version in versions if version), default=None)
        diff = (
            describe_change(thing, target, known, document_of(thing), self.mask.all_shown)
            if known
            else None
        )
        if not self.dry_run and not self.atomic:
            raise _conflict(current_etag(thing, target), thing.version, diff)
        stored = self._stored_etag(thing, target)
        version, _ = self._as_stored[target.kind, target.lookup]
        within_batch = stored in map(normalise, conditions.tags)
        raise _conflict(stored, version, diff, within_batch=within_batch)

    def _stored_etag(self, thing: Versioned, target: Target) -> str:
        """Return the ETag that is valid if this session rolls back.

        After a rollback, other writers reuse its version numbers.
        """
        return _etag(thing.ref, target, *self._as_stored[target.kind, target.lookup])

    def _update_row(
        self,
        thing: Versioned,
        columns: Document,
        fields: list[str],
        delta: revisions.Delta,
        after: Document,
    ) -> Document | None:
        """Update the row.

        The UPDATE itself checks the version; the row lock only spares other writers a failed
        attempt.
        """
        was = thing.version
        weight = thing.delta_weight + revisions.weigh(delta)
        snapshot = after if revisions.snapshot_due(thing, weight, after) else None
        kept: Document = {
            **columns,
            "version": was + 1,
            "updated_at": self.actor.moment,
            "field_versions": thing.field_versions | dict.fromkeys(fields, was + 1),
            "snapshot_version": was + 1 if snapshot else thing.snapshot_version,
            "delta_weight": 0 if snapshot else weight,
        }
        if not type(thing)._default_manager.filter(pk=thing.pk, version=was).update(**kept):
            raise Conflict("The resource was modified at the same moment.", current_version=None)
        for name, value in kept.items():
            setattr(thing, name, value)
        return snapshot

    def _record(
        self,
        thing: Versioned,
        uri: str,
        action: str,
        fields: list[str],
        operation: Any,
        delta: revisions.Delta,
        snapshot: Document | None,
        at: datetime | None,
    ) -> None:
        """Record the change, at once or with the other writes of the session.

        `at` is the row's write time, or None for a row that brings older times with it.
        """
        change = change_log.make_change(
            self.actor,
            thing,
            uri=uri,
            action=action,
            fields=fields,
            operation=operation,
            batch=self.batch,
            at=at,
        )
        self._pending.append((change, thing, delta, snapshot))
        if not self._records_together:
            self._record_pending()

    def _record_pending(self) -> None:
        pending, self._pending = self._pending, []
        change_log.record([(change, thing) for change, thing, _, _ in pending])
        revisions.write_revisions(
            (change, delta, snapshot) for change, _, delta, snapshot in pending
        )


class _Turn(Func):
    template = "pg_advisory_xact_lock(hashtextextended(%(expressions)s, 0))"
    output_field = TextField()


def _lock_rows(rows: Any, kind: str, column: str, *values: Any) -> None:
    """Lock rows, in the order of the column, without returning them. The caller reads them
    afterwards, in a separate statement.

    After a wait PostgreSQL re-reads only the locked rows. Rows that the same statement joins or
    looks up (the assignee, the readers) are still in their state before the wait. PostgreSQL also
    grants row locks in no particular order, so the statement first queues for an advisory lock,
    which is granted in FIFO order. On SQLite the transaction is the lock.
    """
    if connection.vendor != "postgresql":
        return
    name = Concat(Value(f"{kind} "), Cast(F(column), TextField()), output_field=TextField())
    found = rows.filter(**{f"{column}__in": values}).order_by(column).annotate(turn=_Turn(name))
    list(found.select_for_update(no_key=True).values_list("pk", "turn"))


def current_etag(thing: Versioned, target: Target) -> str:
    return _etag(thing.ref, target, thing.version, thing.field_versions)


def _etag(ref: str, target: Target, version: int, field_versions: dict[str, int]) -> str:
    return make_etag(
        ref,
        field_versions.get(target.etag_field, 1) if target.field else version,
        target.etag_field,
    )


def _conflict(etag: str, version: int, diff: Any, *, within_batch: bool = False) -> Conflict:
    if not within_batch:
        return Conflict(
            "The resource was modified since you read it.",
            current_etag=etag,
            current_version=version,
            diff=diff,
        )
    return Conflict(
        "An earlier operation of this batch changed the resource.",
        suggestion=(
            "Give the ETag with the first operation on an address alone; the later ones see what it"
            " wrote."
        ),
        current_etag=etag,
        current_version=version,
        diff=diff,
    )


def address_of(thing: Versioned, target: Target) -> str:
    """Return the canonical URI, regardless of escapes or field aliases the caller used."""
    if target.field is None or isinstance(thing, Comment):
        return uri_of(thing)
    element = () if target.index is None else (str(target.index),)
    return "/".join((uri_of(thing), target.field.name, *element))


def refuse_read_only(thing: Versioned) -> None:
    if isinstance(thing, Comment):
        refuse_read_only(thing.item)
    if thing.archived_at:
        raise PermissionDenied(
            f"Archived {thing.KIND}s are read-only",
            suggestion="Unarchive it first.",
            archived_at=thing.archived_at.isoformat(),
        )
    refuse_mirrored(thing)


def refuse_words_of_others(actor: Actor, thing: Versioned) -> None:
    if isinstance(thing, Comment) and not actor.may_reword(thing.author_id):
        raise PermissionDenied(
            "Only its author or an admin edits a comment.",
            suggestion="Write a comment of your own instead.",
        )


def refuse_mirrored(thing: Versioned) -> None:
    if isinstance(thing, Resource) and thing.root:
        raise PermissionDenied(
            "Mirrored files are read-only",
            suggestion="Edit the file where it lives; the next scan brings it here.",
        )
