"""Read collections: tasks, epics, an epic's tasks, the archive, the change feed and histories."""

from typing import Any

from resources_app.addresses.hidden_refs import NAMING_FIELDS, Mask
from resources_app.addresses.targets import Target, field_target, item_target, visible_thing
from resources_app.history import change_log
from resources_app.history.etags import make_etag
from resources_app.identity.roles import Person
from resources_app.models import Change, Epic, Task
from resources_app.models.base import Versioned
from resources_app.querying.queries import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    CollectionQuery,
    Model,
    Page,
    Rows,
    as_seen_by,
    count_groups,
    count_live,
    fetch_live,
    fetch_page,
    one_of,
    query_of,
    whole_number,
)
from resources_app.reading.result import Reading, ReadRequest, computed, content_etag
from resources_app.reading.serializers import change_json, items_json, version_json

# The fields of an item that can change without a new version.
_BESIDE_VERSION = ("assignee", *NAMING_FIELDS, "parent_id")


def read_tasks(request: ReadRequest) -> Reading:
    return _read_all(request, Task)


def read_epics(request: ReadRequest) -> Reading:
    return _read_all(request, Epic)


def _read_all(request: ReadRequest, model: Model) -> Reading:
    user = request.actor.user
    query = query_of(user, model, request.uri.query)
    if query.aggregate:
        return computed(request, count_live(model, user, query))
    return _page(request, fetch_live(model, user, query), query)


def read_epic_tasks(request: ReadRequest) -> Reading:
    epic = request.visible_item(item_target("epics", request.variables["id"]))
    rows = Task.objects.visible_to(request.actor.user).live().in_epic(epic.pk)
    return _read_rows(request, Task, rows, request.uri.query)


def read_archive(request: ReadRequest) -> Reading:
    """Read archived tasks, or archived epics with `type=epic`."""
    pairs = [(name, value) for name, value in request.uri.query if name != "type"]
    kind = one_of("type", request.parameter("type", "task"), ("task", "epic"))
    model: Model = Epic if kind == "epic" else Task
    rows = model.objects.visible_to(request.actor.user).archived()
    return _read_rows(request, model, rows, pairs)


def _read_rows(request: ReadRequest, model: Model, rows: Rows, pairs: Any) -> Reading:
    """Read a page of items, or the counts of an aggregate."""
    user = request.actor.user
    query = as_seen_by(user, query_of(user, model, pairs))
    if query.aggregate:
        return computed(request, dict(count_groups(rows, query, user)))
    return _page(request, fetch_page(rows, query), query)


def _page(request: ReadRequest, page: Page, query: CollectionQuery) -> Reading:
    results = items_json(page.rows, request.actor.user, query.fields)
    contents = {"results": results, "total": page.total, "next_cursor": page.next_cursor}
    return computed(request, contents, etag=_page_etag(page, results))


def _page_etag(page: Page, results: list[dict[str, Any]]) -> str:
    """Return an ETag made of versions, so that its cost does not grow with the texts.

    A version covers all fields but these: the name of a user changes without a write to the item,
    and an id is hidden or shown as the rights to another item change. The time of the write tells
    versions apart whose numbers repeat after a restored backup, and the field names a release that
    has other fields.
    """
    facts = [
        (row.ref, row.version, row.updated_at.isoformat(), *map(shown.get, _BESIDE_VERSION))
        for row, shown in zip(page.rows, results, strict=True)
    ]
    return content_etag([facts, list(results[0]) if results else [], page.total, page.next_cursor])


def read_changes(request: ReadRequest) -> Reading:
    limit = _limit(request)
    found, cursor = change_log.feed(request.actor.user, request.parameter("since"), limit)
    shown = Mask(request.actor.user).all_shown(change_json(change) for change in found)
    return computed(request, {"results": shown, "next_cursor": cursor})


def read_item_versions(request: ReadRequest) -> Reading:
    return _versions(request, item_target(request.collection, request.variables["id"]))


def read_field_versions(request: ReadRequest) -> Reading:
    target = field_target(request.collection, request.variables["id"], request.variables["field"])
    return _versions(request, target)


def _versions(request: ReadRequest, target: Target) -> Reading:
    cursor, limit = request.parameter("cursor"), request.parameter("limit", str(DEFAULT_LIMIT))
    user, item = request.actor.user, request.visible_item(target)
    return computed(request, _history(user, item, target, cursor, limit))


def list_versions(user: Person, target: Target, cursor: str, limit: str) -> dict[str, Any]:
    return _history(user, visible_thing(user, target), target, cursor, limit)


def _history(
    user: Person, thing: Versioned, target: Target, cursor: str, limit: str
) -> dict[str, Any]:
    """Return the versions of an object or field, newest first.

    The cursor is the last version shown.
    """
    most = whole_number("limit", limit, 1, MAX_LIMIT)
    rows = (
        Change.objects.filter(kind=thing.KIND, object_id=thing.pk)
        .select_related("author")
        .order_by("-version")
    )
    if cursor:
        rows = rows.filter(version__lt=whole_number("cursor", cursor, 1, 10**9 - 1))
    found = _of_field(rows, target, most + 1) if target.field else list(rows[: most + 1])
    shown = Mask(user).all_shown(
        version_json(change, make_etag(thing.ref, change.version, target.etag_field))
        for change in found[:most]
    )
    return {
        "results": shown,
        "next_cursor": str(shown[-1]["version"]) if len(found) > most else None,
    }


def _of_field(rows: Any, target: Target, limit: int) -> list[Change]:
    """Return the changes to a field. Creation counts as the first version of every field."""
    found = []
    for change in rows.iterator(chunk_size=200):
        if target.etag_field in change.fields or change.version == 1:
            found.append(change)
        if len(found) == limit:
            break
    return found


def _limit(request: ReadRequest) -> int:
    return whole_number("limit", request.parameter("limit", str(DEFAULT_LIMIT)), 1, MAX_LIMIT)
