"""Start background work on request."""

from typing import cast

from django.contrib.auth.models import User

from resources_app.errors import NotFound, PermissionDenied, ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.intelligencebank.sync import scheduling
from resources_app.jobs import queue
from resources_app.models import IBSyncRun

SYNC = "sync-"
STARTABLE = ("scan_resources", "reindex", "ib_incremental")


def start(actor: Actor, kind: str, again: str = "") -> None:
    """Start a kind of work that needs no arguments, or retry a failed run. Admins only."""
    if not actor.is_admin:
        raise PermissionDenied(
            "Only admins start background work.", suggestion="Ask an administrator."
        )
    number = again.removeprefix(SYNC)
    if number.isascii() and number.isdigit() and len(number) < 19:
        _start_again(actor, int(number), is_sync=again.startswith(SYNC))
    elif kind in STARTABLE:
        queue.enqueue(kind, {}, key=kind, requested_by=cast(User, actor.user))
    else:
        raise ValidationFailed(
            f"There is no work {kind!r} to start.", field="kind", allowed_values=list(STARTABLE)
        )


def _start_again(actor: Actor, number: int, *, is_sync: bool) -> None:
    if not is_sync:
        queue.retry(number)
        return
    run = IBSyncRun.objects.select_related("connection").filter(pk=number).first()
    if run is None:
        raise NotFound("There is no such run.", id=f"{SYNC}{number}")
    scheduling.request_run(run.connection, run.kind, actor.user)
