"""Serve addresses over REST: read and write any URI, batches, histories, the change feed and
files.
"""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from backlog_site.api.actors import actor_of
from backlog_site.api.responses import (
    body_of,
    conditions_of,
    flag,
    idempotency_key,
    if_changed,
    parameter,
    read_response,
    reading_response,
    refuse_conditions,
    with_etag,
)
from resources_app.addresses import uris
from resources_app.errors import ValidationFailed
from resources_app.reading.by_address import read
from resources_app.reading.collections import list_versions
from resources_app.reading.registry import target_of
from resources_app.reading.viewer import viewer_json
from resources_app.writing import batches, write_path
from resources_app.writing import undo as undoing

_URI = OpenApiParameter(
    "uri",
    OpenApiTypes.STR,
    required=True,
    description="Any address, e.g. mcp://backlog/tasks/TASK-0001",
)
_OBJECT = {"type": "object", "additionalProperties": {}}
_ANSWER = {200: OpenApiResponse(_OBJECT)}
_WRITE = {
    "type": "object",
    "required": ["uri", "operation"],
    "properties": {
        "uri": {"type": "string"},
        "operation": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"type": "string"}},
        },
        "etag": {"type": "string"},
        "dry_run": {"type": "boolean"},
    },
}
_BATCH = {
    "type": "object",
    "required": ["operations"],
    "properties": {
        "operations": {"type": "array", "maxItems": batches.MAX_OPERATIONS, "items": _WRITE},
        "atomic": {"type": "boolean"},
        "idempotency_key": {"type": "string"},
        "dry_run": {"type": "boolean"},
    },
}
_UNDO = {
    "type": "object",
    "properties": {
        "batch": {"type": "string", "format": "uuid"},
        "agent": {"type": "string"},
        "since": {"type": "string", "format": "date-time"},
        "until": {"type": "string", "format": "date-time"},
    },
}


@extend_schema(parameters=[_URI], responses=_ANSWER)
@api_view(["GET"])
def resource(request: Request) -> Response:
    return reading_response(request, read(actor_of(request), parameter(request, "uri")), whole=True)


@extend_schema(parameters=[_URI], responses=_ANSWER)
@api_view(["GET"])
def mcp_resource(request: Request) -> Response:
    """Return the viewer's form of a resource: content without frontmatter, and its path inside its
    root.
    """
    uri = parameter(request, "uri")
    reading = read(actor_of(request), uri)
    return if_changed(request, reading.etag, lambda: Response(viewer_json(reading)))


@extend_schema(request={"application/json": _WRITE}, responses=_ANSWER)
@api_view(["POST"])
def write(request: Request) -> Response:
    body = body_of(request, "uri", "operation", "etag", "dry_run", "idempotency_key")
    actor, dry_run = actor_of(request), flag(body, "dry_run", default=False)
    conditions = conditions_of(request, body.get("etag"))
    answer = batches.once(
        actor,
        idempotency_key(request, body),
        body | conditions.fingerprint(),
        lambda: write_path.write(
            actor, body.get("uri", ""), body.get("operation"), conditions, dry_run=dry_run
        ),
    )
    return with_etag(Response(answer), answer["etag"])


@extend_schema(request={"application/json": _BATCH}, responses=_ANSWER)
@api_view(["POST"])
def write_batch(request: Request) -> Response:
    body = body_of(request, "operations", "atomic", "idempotency_key", "dry_run")
    refuse_conditions(request)
    answer = batches.write_batch(
        actor_of(request),
        body.get("operations"),
        atomic=flag(body, "atomic", default=True),
        idempotency_key=idempotency_key(request, body),
        dry_run=flag(body, "dry_run", default=False),
    )
    return Response(answer)


@extend_schema(request={"application/json": _UNDO}, responses=_ANSWER)
@api_view(["POST"])
def undo(request: Request) -> Response:
    """Undo everything one batch did, or everything one agent did for you between two moments."""
    body, actor = body_of(request, "batch", "agent", "since", "until"), actor_of(request)
    refuse_conditions(request)
    if "batch" in body and len(body) > 1:
        raise ValidationFailed("Name a batch, or an agent and its times, not both.", field="batch")
    if "batch" in body:
        undone = batches.once(
            actor,
            idempotency_key(request),
            {"undo": body},
            lambda: undoing.undo_batch(actor, body["batch"]),
        )
    else:
        moments = (body.get("agent"), body.get("since"), body.get("until"))
        undone = batches.once(
            actor,
            idempotency_key(request),
            {"undo": body},
            lambda: undoing.undo_run(actor, *moments),
        )
    return Response(undone)


@extend_schema(parameters=[_URI], responses=_ANSWER)
@api_view(["GET"])
def versions(request: Request) -> Response:
    target = target_of(uris.parse(parameter(request, "uri", "limit", "cursor")))
    cursor, limit = request.query_params.get("cursor", ""), request.query_params.get("limit", "50")
    return Response(list_versions(actor_of(request).user, target, cursor, limit))


@extend_schema(parameters=[OpenApiParameter("since", OpenApiTypes.STR)], responses=_ANSWER)
@api_view(["GET"])
def changes(request: Request) -> Response:
    return read_response(request, "changes")
