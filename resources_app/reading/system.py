"""Read system resources: the caller's status, users, roles, configuration, runs and task
templates.
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from resources_app.errors import NotFound
from resources_app.identity import oauth_grants
from resources_app.identity.roles import ROLES, groups_of, is_admin, may_read, may_write
from resources_app.intelligencebank.browsing import freshness
from resources_app.models import IBConnection, IBSyncRun, Job
from resources_app.reading.result import Reading, ReadRequest, computed
from resources_app.reading.serializers import job_json, sync_run_json
from resources_app.reading.templates import TEMPLATES

MAX_ROWS = 200
# Worker jobs of sync runs, which are listed themselves, and the reading of rights, which never
# ends.
UNSHOWN_JOBS = ("ib_sync", "ib_rights", "ib_rights_due")


def read_auth_status(request: ReadRequest) -> Reading:
    actor = request.actor
    signed_in = bool(actor.user.pk)
    status = {
        "authenticated": signed_in,
        "username": actor.user.get_username() if signed_in else None,
        "role": _role(actor.user),
        "scope": actor.scope if signed_in else None,
        "groups": sorted(set(groups_of(actor.user)) - set(ROLES)),
        "may_write": actor.may_write,
        "is_admin": actor.is_admin,
    }
    return computed(request, status)


def _role(user: object) -> str | None:
    checks = (("admin", is_admin), ("contributor", may_write), ("viewer", may_read))
    return next((role for role, holds in checks if holds(user)), None)  # type: ignore[arg-type]  # a Person


def read_users(request: ReadRequest) -> Reading:
    people = User.objects.prefetch_related("groups").order_by("username")[:MAX_ROWS]
    shown = [
        {
            "username": person.username,
            "is_active": person.is_active,
            "groups": sorted(group.name for group in person.groups.all()),
            "last_login": person.last_login.isoformat() if person.last_login else None,
        }
        for person in people
    ]
    return computed(request, {"results": shown, "total": User.objects.count()})


def read_roles(request: ReadRequest) -> Reading:
    meanings = {
        "viewer": ["read"],
        "contributor": ["read", "write"],
        "admin": ["read", "write", "admin"],
    }
    shown = [
        {"role": role, "may": may, "members": User.objects.filter(groups__name=role).count()}
        for role, may in meanings.items()
    ]
    return computed(request, {"results": shown})


def read_sync_config(request: ReadRequest) -> Reading:
    """Read the sync configuration: names and intervals, but no paths of this machine."""
    schedule = {
        name: str(entry["schedule"]) for name, entry in settings.CELERY_BEAT_SCHEDULE.items()
    }
    mirrors = [
        {
            "client_id": one.client_id,
            "state": one.state,
            "is_enabled": one.is_enabled,
            "freshness": freshness(one),
        }
        for one in IBConnection.objects.order_by("client_id")
    ]
    shown = {
        "resource_roots": sorted(settings.RESOURCE_ROOTS),
        "intelligencebank": mirrors,
        "schedule": schedule,
    }
    return computed(request, shown)


def read_oauth_config(request: ReadRequest) -> Reading:
    return computed(request, oauth_grants.configuration())


def read_templates(request: ReadRequest) -> Reading:
    shown = [
        {
            "name": template.name,
            "description": template.description,
            "uri": f"metadata://templates/{template.name}",
        }
        for template in TEMPLATES.values()
    ]
    return computed(request, {"results": shown})


def read_template(request: ReadRequest) -> Reading:
    template = TEMPLATES.get(request.variables["template"])
    if template is None:
        raise NotFound("There is no such template.", templates=sorted(TEMPLATES))
    contents = {"name": template.name, "description": template.description, "task": template.task()}
    return computed(request, contents)


def read_workflows(request: ReadRequest) -> Reading:
    return computed(request, {"results": _runs()})


def workflow_ids() -> list[str]:
    return [str(run["id"]) for run in _runs()]


def _runs() -> list[dict[str, Any]]:
    jobs = Job.objects.exclude(kind__in=UNSHOWN_JOBS).order_by("-created_at", "-pk")[:MAX_ROWS]
    runs = IBSyncRun.objects.select_related("connection").order_by("-started_at", "-pk")[:MAX_ROWS]
    rows = [*(job_json(job) for job in jobs), *(sync_run_json(run) for run in runs)]
    return sorted(rows, key=lambda row: str(row["created_at"]), reverse=True)[:MAX_ROWS]


def read_workflow(request: ReadRequest) -> Reading:
    number = request.variables["id"]
    if number.startswith("sync-"):
        return _read_sync_run(request, number.removeprefix("sync-"))
    job = (
        Job.objects.filter(pk=int(number)).first()
        if number.isascii() and number.isdigit() and len(number) < 19
        else None
    )
    if job is None:
        raise NotFound(
            "There is no such run.", suggestion="List them: workflow://workflows.", id=number
        )
    return computed(request, job_json(job))


def _read_sync_run(request: ReadRequest, number: str) -> Reading:
    known = number.isascii() and number.isdigit() and len(number) < 19
    run = (
        IBSyncRun.objects.select_related("connection").filter(pk=int(number)).first()
        if known
        else None
    )
    if run is None:
        raise NotFound(
            "There is no such run.",
            suggestion="List them: workflow://workflows.",
            id=f"sync-{number}",
        )
    return computed(request, sync_run_json(run))
