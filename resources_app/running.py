"""Background work asked for by a person."""

from typing import cast

from django.contrib.auth.models import User

from resources_app import jobs
from resources_app.access import Actor
from resources_app.errors import PermissionDenied, ValidationFailed
from resources_app.models import Job

STARTABLE = ("scan_resources", "reindex", "ib_incremental")


def start(actor: Actor, kind: str, again: str = "") -> Job:
    """A kind of work that needs no arguments, or a failed run once more. For admins."""
    if not actor.is_admin:
        raise PermissionDenied("Only admins start background work.", suggestion="Ask an administrator.")
    if again.isascii() and again.isdigit() and len(again) < 19:
        return jobs.retry(int(again))
    if kind not in STARTABLE:
        raise ValidationFailed(f"There is no work {kind!r} to start.", field="kind", allowed_values=list(STARTABLE))
    return jobs.enqueue(kind, {}, key=kind, requested_by=cast(User, actor.user))
