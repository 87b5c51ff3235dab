"""Read each user's rights with the user's own session and cache them briefly.

In doubt, access is denied.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from resources_app.identity.roles import Person, may_read
from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import connections, linking, mapping
from resources_app.intelligencebank.client import IBClient, Session
from resources_app.intelligencebank.failures import AuthRequired, IBFailure, Refused, SessionExpired
from resources_app.intelligencebank.linking import RIGHTS_JOB
from resources_app.intelligencebank.sync.stages import following
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import IBConnection, IBEntitlement, IBFolder, IBLink

Rights = dict[str, tuple[str, ...]]
MAX_CHECK_PAGES = 5
CHUNK = 500


@job("ib_rights_due")
def refresh_due(running: RunningJob) -> None:
    """Refresh rights when half of their lifetime is left."""
    now = timezone.now()
    for link in IBLink.objects.select_related("connection").filter(
        expires_at__gt=now, connection__is_enabled=True
    ):
        half = timedelta(seconds=link.connection.rights_seconds / 2)
        if link.verified_at is None or link.verified_at < now - half:
            linking.request_rights(link)


@job(RIGHTS_JOB)
def read_rights_job(running: RunningJob) -> None:
    link = (
        IBLink.objects.select_related("connection")
        .filter(pk=running.payload.get("link", 0))
        .first()
    )
    if link is not None:
        count = read_rights(link, running.heartbeat)
        running.progress(count, count, f"{count} folders")


def read_rights(link: IBLink, tell_alive: Callable[[], None] | None = None) -> int:
    """Read all rights, then replace the old ones atomically.

    If the crawl fails, the old ones expire.
    """
    client = connections.client_for(link.connection)
    started = timezone.now()
    try:
        session = linking.session_of(link)
        rights = _crawl(link.connection, client, session, tell_alive or _silent)
    except (AuthRequired, SessionExpired) as failure:
        linking.end_session(link, str(failure))
        return 0
    except IBFailure as failure:
        IBLink.objects.filter(pk=link.pk).update(error=str(failure)[:500])
        return 0
    finally:
        client.close()
    return _replace(link, rights, started, session)


def _silent() -> None:
    """Do nothing; no job is watching."""


def _crawl(
    connection: IBConnection, client: IBClient, session: Session, tell_alive: Callable[[], None]
) -> Rights:
    """Query the subfolders of every folder that has any: a right may start anywhere in the tree."""
    below = IBFolder.objects.filter(connection=connection, hidden=False, folders_count__gt=0)
    parents = ["", *below.order_by("depth", "pk").values_list("ib_id", flat=True)]
    rights: Rights = {}
    for parent in parents:
        rights |= _rights_below(client, session, parent)
        tell_alive()
    return rights


def _rights_below(client: IBClient, session: Session, parent: str, most: int = 10**6) -> Rights:
    rights: Rights = {}
    offset: int | None = 0
    while offset is not None and most:
        try:
            page = client.fetch(session, api.folders_in(parent, offset))
        except Refused:
            return rights
        rights |= {
            mapping.id_of(row): mapping.allowed_actions(row)
            for row in page.rows
            if mapping.id_of(row)
        }
        offset, most = following(page), most - 1
    return rights


def _replace(link: IBLink, rights: Rights, started: datetime, session: Session) -> int:
    """Replace the rights.

    For unchanged ones only the times are updated, in one statement, to keep the lock short.
    """
    rows = IBFolder.objects.filter(connection=link.connection).values_list(
        "pk", "ib_id", "parent_ib_id", "depth"
    )
    granted = {ib_id for ib_id, actions in rights.items() if actions}
    fresh = {
        pk: _entitlement(
            link, pk, rights[ib_id], started, session, is_top=_is_top(depth, parent, granted)
        )
        for pk, ib_id, parent, depth in rows
        if ib_id in granted
    }
    with transaction.atomic():
        IBLink.objects.select_for_update().get(pk=link.pk)
        known = {
            folder: facts
            for folder, *facts in link.entitlements.values_list("folder_id", "actions", "is_top")
        }
        _forget(link, list(known.keys() - fresh.keys()))
        link.entitlements.update(verified_at=started, expires_at=_until(link, started, session))
        _upsert(
            [one for folder, one in fresh.items() if known.get(folder) != [one.actions, one.is_top]]
        )
        IBLink.objects.filter(pk=link.pk).update(verified_at=started, error="")
    return len(fresh)


def _forget(link: IBLink, folders: list[int]) -> None:
    for start in range(0, len(folders), CHUNK):
        link.entitlements.filter(folder_id__in=folders[start : start + CHUNK]).delete()


def _until(link: IBLink, at: datetime, session: Session) -> datetime:
    return min(at + timedelta(seconds=link.connection.rights_seconds), session.expires_at)


def _is_top(depth: int, parent: str, granted: set[str]) -> bool:
    """Return whether the user's tree starts here.

    The root itself is never a start; its children are.
    """
    return depth == 1 or (depth > 1 and parent not in granted)


def _entitlement(
    link: IBLink,
    folder: int,
    actions: tuple[str, ...],
    at: datetime,
    session: Session,
    *,
    is_top: bool,
) -> IBEntitlement:
    return IBEntitlement(
        link=link,
        folder_id=folder,
        actions=list(actions),
        may_list=bool(actions),
        may_view=bool({"view", "publish", "admin"} & set(actions)),
        is_top=is_top,
        verified_at=at,
        expires_at=_until(link, at, session),
    )


def _upsert(rows: list[IBEntitlement]) -> None:
    columns = ["actions", "may_list", "may_view", "is_top", "verified_at", "expires_at"]
    IBEntitlement.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["link", "folder"],
        update_fields=columns,
        batch_size=CHUNK,
    )


def recheck(user: Person, connection: IBConnection, folder: IBFolder | None) -> bool:
    """Check one folder live with the user's own session when the cached rights have expired.

    A folder that does not exist is checked too, so that timing discloses nothing.
    """
    link = linking.link_of(user, connection) if may_read(user) else None
    now = timezone.now()
    if (
        link is None
        or link.expires_at is None
        or link.expires_at <= now
        or linking.are_rights_known(link, now)
    ):
        return False
    linking.request_rights(link)
    client = connections.client_for(connection, hurried=True)
    try:
        session = linking.session_of(link)
        found = _rights_below(
            client, session, folder.parent_ib_id if folder else "", MAX_CHECK_PAGES
        )
    except (AuthRequired, SessionExpired) as failure:
        linking.end_session(link, str(failure))
        return False
    except IBFailure:
        return False
    finally:
        client.close()
    return folder is not None and _keep_one(link, folder, found.get(folder.ib_id, ()), now, session)


def _keep_one(
    link: IBLink, folder: IBFolder, actions: tuple[str, ...], at: datetime, session: Session
) -> bool:
    if not actions:
        link.entitlements.filter(folder=folder).delete()
        return False
    known = link.entitlements.filter(folder=folder).first()
    is_top = known.is_top if known else folder.depth == 1
    _upsert([_entitlement(link, folder.pk, actions, at, session, is_top=is_top)])
    return True
