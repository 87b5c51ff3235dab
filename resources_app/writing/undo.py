"""Undo all changes of a batch or an agent run as one new write.

Rejected if a field has changed since.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from resources_app.addresses.targets import Target
from resources_app.errors import Conflict, NotFound, ValidationFailed
from resources_app.fields.declarations import clean_text, field_of
from resources_app.history import revisions
from resources_app.history.documents import MODELS, uri_of
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.models import Change, Resource
from resources_app.models.base import Versioned
from resources_app.writing.edits import Edit, refuse_lost_bytes
from resources_app.writing.session import WriteSession, refuse_mirrored, refuse_words_of_others
from resources_app.writing.write_path import write_transaction

MAX_CHANGES = 5000
_INTERNAL = ("archived_at", "path")


def undo_batch(actor: Actor, batch: str) -> dict[str, Any]:
    try:
        number = uuid.UUID(batch)
    except (ValueError, AttributeError, TypeError):
        raise ValidationFailed(
            "batch must be the id a batch answered with.", field="batch", value=batch
        ) from None
    return _undo(actor, Change.objects.filter(batch=number), {"type": "undo", "batch": str(number)})


def undo_run(actor: Actor, agent: Any, since: Any, until: Any = None) -> dict[str, Any]:
    """Undo everything one agent wrote for the calling user between two times (default: until
    now).
    """
    agent = clean_text("agent", agent, 100)
    since, until = _moment("since", since), _moment("until", until) if until else timezone.now()
    run = Change.objects.filter(
        author_id=actor.user.pk, agent=agent, created_at__gte=since, created_at__lte=until
    )
    return _undo(
        actor,
        run,
        {"type": "undo", "agent": agent, "since": since.isoformat(), "until": until.isoformat()},
    )


def _moment(name: str, value: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
    except (TypeError, ValueError, OverflowError):
        raise ValidationFailed(
            f"{name} must be a time as 2026-01-31T12:00:00Z.", field=name, value=value
        ) from None


def _undo(actor: Actor, changes: Any, operation: dict[str, Any]) -> dict[str, Any]:
    visible = list(changes.visible_to(actor.user).order_by("version")[: MAX_CHANGES + 1])
    if not visible:
        raise NotFound("There is no such batch or run, or nothing of it is visible to you.")
    if len(visible) > MAX_CHANGES:
        raise ValidationFailed(
            f"More than {MAX_CHANGES} changes; undo a shorter run.", max_changes=MAX_CHANGES
        )
    by_thing: dict[tuple[str, int], list[Change]] = {}
    for change in visible:
        by_thing.setdefault((change.kind, change.object_id), []).append(change)
    undo_id = uuid.uuid4()
    with write_transaction():
        session = WriteSession(actor, undo_id)
        things = {key: session.lock(_target(*key)) for key in sorted(by_thing)}
        for thing in things.values():
            refuse_mirrored(thing)
            refuse_words_of_others(actor, thing)
        _refuse_moved_on(things, by_thing)
        for key, thing in things.items():
            edit = _reverse(thing, by_thing[key], operation)
            # An id hidden from the caller stays unchanged and is never disclosed.
            seen = replace(edit, changed=session.mask.shown(edit.changed))
            session.save(thing, seen, uri=uri_of(thing), action="undo")
    return {
        "batch": str(undo_id),
        "undone": len(visible),
        "things": [uri_of(thing) for thing in things.values()],
    }


def _target(kind: str, object_id: int) -> Target:
    return Target(MODELS[kind].KIND, ("pk", object_id))


def _refuse_moved_on(
    things: dict[tuple[str, int], Versioned], by_thing: dict[tuple[str, int], list[Change]]
) -> None:
    """Reject the undo if a field was changed after the run."""
    moved = [
        {"uri": uri_of(thing), "field": name, "version": thing.field_versions[name]}
        for key, thing in things.items()
        for name in _touched(by_thing[key])
        if thing.field_versions.get(name, 1) > by_thing[key][-1].version
    ]
    if moved:
        raise Conflict(
            "Some of it was changed since and cannot be undone as a whole.",
            suggestion="Undo or restore the listed ones one by one.",
            moved_on=moved,
        )


def _reverse(thing: Versioned, run: Sequence[Change], operation: dict[str, Any]) -> Edit:
    """Return the edit back to the version before the run.

    Objects created by the run are archived.
    """
    first = run[0]
    if first.action == "create":
        return Edit(operation, internal={"archived_at": run[-1].created_at.isoformat()})
    before = revisions.document_at(thing.KIND, thing.pk, first.version - 1)
    names = [name for name in _touched(run) if name in before]
    if isinstance(thing, Resource):
        _refuse_lost_file(thing, run, before)
    return Edit(
        operation,
        changed={
            name: before[name]
            for name in names
            if (field := field_of(thing.KIND, name)) and field.writable
        },
        internal={name: before[name] for name in names if name in _INTERNAL},
    )


def _refuse_lost_file(resource: Resource, run: Sequence[Change], before: Document) -> None:
    """Reject an undo whose file is lost: history has no binary bytes, and the old path may be taken
    by now.
    """
    if {"content", "sha256"} & set(_touched(run)):
        refuse_lost_bytes(before, run[0].version - 1)
    if Resource.objects.filter(path=before["path"]).exclude(pk=resource.pk).exists():
        raise Conflict(f"Nothing can be moved back to {before['path']} now.", path=before["path"])


def _touched(run: Sequence[Change]) -> list[str]:
    return sorted({name for change in run for name in change.fields})
