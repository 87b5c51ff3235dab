"""Apply many writes in one request, atomically or one by one.

Retries are safe by key; a batch can be undone.
"""

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from resources_app.addresses.targets import Target
from resources_app.errors import BacklogError, ValidationFailed
from resources_app.fields.declarations import clean_text
from resources_app.identity.roles import Actor
from resources_app.models import IdempotencyKey
from resources_app.writing.session import WriteSession
from resources_app.writing.write_path import write_transaction, written_target

MAX_OPERATIONS = 500
MAX_KEY = 200
REPORTED_EVERY = 25
_ENTRY_KEYS = {"uri", "operation", "etag"}

Answer = dict[str, Any]
# Arguments: number done, total.
Progress = Callable[[int, int], object]


def write_batch(
    actor: Actor,
    operations: Any,
    *,
    atomic: bool = True,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Answer:
    entries = _check_entries(operations)
    body = {"operations": operations, "atomic": atomic, "dry_run": dry_run}
    return once(
        actor,
        idempotency_key,
        body,
        lambda: _run(actor, entries, progress, atomic=atomic, dry_run=dry_run),
    )


def once(actor: Actor, key: str | None, body: Any, run: Callable[[], Answer]) -> Answer:
    """Run, and store the response under the key in the same transaction.

    A retry gets the stored response.
    """
    owner = actor.user.pk
    if key is None or owner is None:
        return run()
    if not clean_text("idempotency_key", key, MAX_KEY):
        raise ValidationFailed(
            "idempotency_key must not be empty.", field="idempotency_key", value=key
        )
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    with write_transaction():
        try:
            # The unique key makes a second request wait here for the first one's transaction.
            with transaction.atomic():
                kept = IdempotencyKey.objects.create(
                    user_id=owner, key=key, body_hash=digest, answer="", created_at=timezone.now()
                )
        except IntegrityError:
            return _kept_answer(owner, key, digest)
        answer = run()
        # Stored as text inside the JSON: a response may quote a NUL from the request, which
        # PostgreSQL's JSON cannot hold.
        kept.answer = json.dumps(answer)
        kept.save(update_fields=["answer"])
    return answer


def _kept_answer(owner: int, key: str, digest: str) -> Answer:
    kept = IdempotencyKey.objects.get(user_id=owner, key=key)
    if kept.body_hash != digest:
        raise ValidationFailed(
            "This idempotency key was used with another request.",
            suggestion="Use a new key for a new request.",
            field="idempotency_key",
            value=key,
        )
    answer: Answer = json.loads(kept.answer)
    return answer


def _run(
    actor: Actor,
    entries: list[dict[str, Any]],
    progress: Progress | None,
    *,
    atomic: bool,
    dry_run: bool,
) -> Answer:
    batch = uuid.uuid4()
    with write_transaction():
        session = WriteSession(actor, batch, dry_run=dry_run, atomic=atomic)
        targets = [_target_or_error(entry) for entry in entries]
        session.lock_all(target for target in targets if isinstance(target, Target))
        results = []
        with session.recording_together():
            for index, (entry, target) in enumerate(zip(entries, targets, strict=True)):
                results.append(_apply(session, index, entry, target, atomic=atomic))
                if progress and len(results) % REPORTED_EVERY == 0:
                    progress(len(results), len(entries))
        transaction.set_rollback(dry_run)
    failed = sum("error" in result for result in results)
    return {
        "batch": None if dry_run else str(batch),
        "atomic": atomic,
        "dry_run": dry_run,
        "failed": failed,
        "results": results,
    }


def _target_or_error(entry: dict[str, Any]) -> Target | BacklogError:
    try:
        return written_target(entry.get("uri"))
    except BacklogError as error:
        return error


def _apply(
    session: WriteSession,
    index: int,
    entry: dict[str, Any],
    target: Target | BacklogError,
    *,
    atomic: bool,
) -> Answer:
    try:
        if isinstance(target, BacklogError):
            raise target
        if atomic:
            return session.apply(target, entry["uri"], entry["operation"], entry.get("etag"))
        with session.savepoint(target):
            return session.apply(target, entry["uri"], entry["operation"], entry.get("etag"))
    except BacklogError as error:
        error.details["operation_index"] = index
        if atomic:
            raise
        return {"uri": entry.get("uri"), "error": error.as_json()}


def _check_entries(operations: Any) -> list[dict[str, Any]]:
    if not isinstance(operations, list) or not 1 <= len(operations) <= MAX_OPERATIONS:
        raise ValidationFailed(
            f"operations must be a list of 1 to {MAX_OPERATIONS} entries.",
            field="operations",
            max_entries=MAX_OPERATIONS,
        )
    for index, entry in enumerate(operations):
        if not isinstance(entry, Mapping) or not {"uri", "operation"} <= set(entry) <= _ENTRY_KEYS:
            raise ValidationFailed(
                f"operations[{index}] must have uri and operation, and may have etag.",
                field=f"operations[{index}]",
                allowed_values=sorted(_ENTRY_KEYS),
            )
    return operations
