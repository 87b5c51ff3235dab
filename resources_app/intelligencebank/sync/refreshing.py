"""Refresh one resource or folder on demand."""

from django.db import transaction

from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import connections, mapping
from resources_app.intelligencebank.client import Listing, ResultPage, renewing
from resources_app.intelligencebank.sync import tree
from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.intelligencebank.sync.stages import following
from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import IBConnection, IBFolder, IBResource
from resources_app.vocabulary import Kind

MAX_PAGES = 20
JOB = "ib_refresh"


def request_refresh(thing: IBFolder | IBResource) -> None:
    queue.enqueue(JOB, {"kind": thing.KIND, "id": thing.pk}, key=f"{JOB}:{thing.KIND}:{thing.pk}")


@job(JOB)
def refresh(running: RunningJob) -> None:
    wanted, pk = running.payload.get("kind"), running.payload.get("id", 0)
    if wanted == Kind.IB_FOLDER and (
        folder := IBFolder.objects.select_related("connection").filter(pk=pk).first()
    ):
        refresh_folder(folder.connection, folder)
    rows = IBResource.objects.select_related("connection")
    if wanted == Kind.IB_RESOURCE and (resource := rows.filter(pk=pk).first()):
        refresh_resource(resource.connection, resource.ib_id)


def refresh_resource(connection: IBConnection, ib_id: str) -> bool:
    """Return whether the resource exists.

    If not, it is hidden; deletion still waits for complete runs.
    """
    page = _fetch(connection, api.resources_by_id([ib_id]))
    rows = [row for row in page.rows if mapping.id_of(row) == ib_id]
    with transaction.atomic():
        mirror = _mirror(connection)
        mirror.keep_resources(rows)
        if not rows:
            gone = IBResource.objects.filter(
                connection=connection, ib_id=ib_id, missing_since__isnull=True
            )
            _hide(mirror, gone.first())
    return bool(rows)


def refresh_folder(connection: IBConnection, folder: IBFolder) -> int:
    """Refresh the subfolders and the first pages of resources. Return the number of rows."""
    subfolders = _fetch(connection, api.folders_in(folder.ib_id))
    pages = [_fetch(connection, api.resources_in(folder.ib_id))]
    while (offset := following(pages[-1])) is not None and len(pages) < MAX_PAGES:
        pages.append(_fetch(connection, api.resources_in(folder.ib_id, offset)))
    with transaction.atomic():
        mirror = _mirror(connection)
        mirror.keep_folders(subfolders.rows)
        for page in pages:
            mirror.keep_resources(page.rows)
        tree.settle(connection)
    return len(subfolders.rows) + sum(len(page.rows) for page in pages)


def _fetch(connection: IBConnection, listing: Listing) -> ResultPage:
    client = connections.client_for(connection)
    try:
        sessions = connections.ServiceSessions(connection, client)
        page, _ = renewing(
            lambda session: client.fetch(session, listing), sessions.current(), sessions.renew
        )
        return page
    finally:
        client.close()


def _mirror(connection: IBConnection) -> Mirror:
    """Return a mirror that is serialized with the pages of a run and counts as seen by it."""
    locked = IBConnection.objects.select_for_update().get(pk=connection.pk)
    return Mirror(locked, locked.generation)


def _hide(mirror: Mirror, resource: IBResource | None) -> None:
    if resource is None:
        return
    resource.missing_since, resource.version = mirror.now, resource.version + 1
    resource.save(update_fields=["missing_since", "version"])
    mirror.tell([resource], "remove")
