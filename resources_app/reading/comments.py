"""Read comments: one, those on an item, or all."""

from typing import Any

from django.db.models import Prefetch

from resources_app.addresses.targets import comment_target, item_target, visible_thing
from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import parse_ref
from resources_app.models import Comment, Epic, Task
from resources_app.models.querysets import CommentQuerySet
from resources_app.querying.queries import DEFAULT_LIMIT, MAX_LIMIT, whole_number
from resources_app.querying.weights import complete, first_within, lightened
from resources_app.reading.result import Reading, ReadRequest, computed
from resources_app.reading.serializers import comment_json
from resources_app.writing.edits import allowed_operations


def read_comments(request: ReadRequest) -> Reading:
    """Read all comments, or the comments on `item=TASK-0001`."""
    rows = Comment.objects.visible_to(request.actor.user).live()
    if ref := request.parameter("item"):
        rows = rows.filter(**_on(ref))
    return computed(request, _page(request, rows))


def read_item_comments(request: ReadRequest) -> Reading:
    target = item_target(request.collection, request.variables["id"])
    item = request.visible_item(target)
    rows = Comment.objects.visible_to(request.actor.user).live().filter(**{target.kind: item.pk})
    return computed(request, _page(request, rows))


def read_comment(request: ReadRequest) -> Reading:
    target = comment_target(request.variables["number"])
    comment = visible_thing(request.actor.user, target)
    assert isinstance(comment, Comment)  # noqa: S101  guaranteed by the target's kind
    shown = comment_json(comment)
    return Reading(
        uri=request.given_uri,
        mime_type="application/json",
        contents=shown,
        etag=shown["etag"],
        version=comment.version,
        operations=allowed_operations(target),
        may_write=request.actor.may_reword(comment.author_id) and not comment.archived_at,
    )


def _on(ref: str) -> dict[str, int]:
    for kind, prefix in (("task_id", "TASK"), ("epic_id", "EPIC")):
        if (number := parse_ref(ref, prefix)) is not None:
            return {kind: number}
    raise ValidationFailed(
        "item must be an id like TASK-0001 or EPIC-0001.", field="item", value=ref
    )


def _page(request: ReadRequest, rows: CommentQuerySet) -> dict[str, Any]:
    """Return a page of comments, oldest first. The cursor is the last comment shown."""
    limit = whole_number("limit", request.parameter("limit", str(DEFAULT_LIMIT)), 1, MAX_LIMIT)
    after = whole_number("cursor", request.parameter("cursor", "0"), 0, 10**9 - 1)
    # Only the item's id is shown, and its other columns may be large.
    related = rows.select_related("author").prefetch_related(*_items()).order_by("pk")
    found = list(lightened(related.filter(pk__gt=after), ["body"])[: limit + 1])
    page = found[:limit]
    page = page[: first_within(page)]
    return {
        "results": [comment_json(comment) for comment in complete(page, ["body"])],
        "total": rows.count(),
        "next_cursor": str(page[-1].pk) if len(found) > len(page) else None,
    }


def _items() -> list["Prefetch[Any]"]:
    return [
        Prefetch(name, queryset=model.objects.only("number"))
        for name, model in (("task", Task), ("epic", Epic))
    ]
