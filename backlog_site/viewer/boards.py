"""Serve board and list: tasks in columns or groups, recent changes, further pages and bulk
edits.
"""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from backlog_site.viewer.queries import boards
from backlog_site.viewer.shell import actor_of, is_fragment, page, pairs_of, person_of, show
from backlog_site.viewer.words import read_words
from resources_app.addresses.uris import build
from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import writable_fields
from resources_app.querying.cursors import SORTS
from resources_app.vocabulary import Kind, Priority, Status
from resources_app.writing import batches
from resources_app.writing import undo as undoing

FILTERS = (
    "search",
    "epic_id",
    "assignee",
    "priority",
    "label",
    "status",
    "ready",
    "filter",
    "sort",
    "order",
)
COLUMN_PAGE = 60
LIST_PAGE = 60
GROUPS = {
    "status": "By status",
    "priority": "By priority",
    "epic_id": "By epic",
    "assignee": "By assignee",
    "none": "No groups",
}
LANES = {"status": "No lanes", "epic_id": "A lane per epic"}
SORT_WORDS = {
    "updated_at": "Last changed",
    "created_at": "Created",
    **{
        field.name: field.title
        for field in writable_fields(Kind.TASK)
        if field.sort_column and field.name != "status"  # the sections are the statuses
    },
    "id": "Number",
}
MOVED_FIELDS = ("status", "epic_id")
BULK_FIELDS = ("status", "priority", "assignee", "epic_id")


@page()
def board(request: HttpRequest) -> HttpResponse:
    group_by = request.GET.get("group", "status")
    return _sections(request, "board", group_by if group_by in LANES else "status", COLUMN_PAGE)


@page()
def listing(request: HttpRequest) -> HttpResponse:
    return _sections(request, "list", request.GET.get("group", "status"), LIST_PAGE)


def _sections(request: HttpRequest, layout: str, group_by: str, limit: int) -> HttpResponse:
    found = boards.sections(request.user, _pairs(request), group_by, limit)
    context: dict[str, Any] = {
        "nav": layout,
        "layout": layout,
        "group_by": group_by,
        "sections": found,
        "has_lanes": layout == "board" and group_by != "status",
        "statuses": Status.labels,
        "total": sum(section.total for section in found),
        "is_filtered": any(name in request.GET for name in FILTERS if request.GET.get(name)),
    }
    if is_fragment(request):
        return show(request, "viewer/_sections.html", context)
    return show(
        request, "viewer/board.html", {**context, **_filters(request, layout), "sorts": SORT_WORDS}
    )


def _filters(request: HttpRequest, layout: str) -> dict[str, Any]:
    return {
        "choices": boards.choices(request.user),
        "groups": GROUPS if layout == "list" else LANES,
        "priorities": Priority.labels[::-1],
        "chosen": {name: request.GET.get(name, "") for name in (*FILTERS, "group")},
    }


def _pairs(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the filters.

    Times and priority sort descending by default; dates and names ascending.
    """
    typed, words = read_words(request.GET.get("search", ""), person_of(request).username)
    pairs = [pair for pair in pairs_of(request.GET, *FILTERS) if pair[0] != "search"] + typed
    pairs += [("search", words)] if words else []
    sort = request.GET.get("sort")
    if (
        sort in SORTS
        and sort in {"updated_at", "created_at", "priority"}
        and not request.GET.get("order")
    ):
        pairs.append(("order", "desc"))
    return pairs


@page()
def more(request: HttpRequest) -> HttpResponse:
    """Return the next page of a column or group."""
    group_by, key = request.GET.get("group", "status"), request.GET.get("key", "")
    section = boards.more(
        request.user, _pairs(request), group_by, key, request.GET.get("cursor", ""), COLUMN_PAGE
    )
    return show(request, "viewer/_more.html", {"section": section, "group_by": group_by})


@page()
def cards(request: HttpRequest) -> HttpResponse:
    """Return the cards of the given tasks that match the filters now, and the count of each
    group.
    """
    group_by = request.GET.get("group", "status")
    pairs, refs = _pairs(request), request.GET.get("ids", "").split(",")
    context = {
        "cards": boards.cards(request.user, pairs, refs),
        "counts": json.dumps(boards.counts(request.user, pairs, group_by)),
        "group_by": group_by,
    }
    return show(request, "viewer/_cards.html", context)


@page("POST")
def move(request: HttpRequest, ref: str) -> HttpResponse:
    """Move a task to another column, lane or both.

    One batch, so that a conflict leaves nothing half done.
    """
    operations = [
        {
            "uri": build("tasks", ref, name),
            "operation": {"type": "set", "value": request.POST[name] or None},
            "etag": request.POST.get(f"{name}_etag") or None,
        }
        for name in MOVED_FIELDS
        if name in request.POST
    ]
    return JsonResponse(batches.write_batch(actor_of(request), operations))


@page("POST")
def bulk(request: HttpRequest) -> HttpResponse:
    """Set one field of many tasks, as one batch that can be undone as one."""
    name, value, refs = (request.POST.get(part, "") for part in ("field", "value", "ids"))
    if name not in BULK_FIELDS:
        raise ValidationFailed(
            f"{name!r} cannot be set for many.", field="field", allowed_values=list(BULK_FIELDS)
        )
    operation = {"type": "set", "value": value or None}
    operations = [
        {"uri": build("tasks", ref, name), "operation": operation} for ref in refs.split(",") if ref
    ]
    return JsonResponse(batches.write_batch(actor_of(request), operations, atomic=False))


@page("POST")
def undo(request: HttpRequest) -> HttpResponse:
    return JsonResponse(undoing.undo_batch(actor_of(request), request.POST.get("batch", "")))
