"""Serve tasks, epics and comments over REST. Each view parses, calls one function and renders."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from backlog_site.api import schemas
from backlog_site.api.actors import actor_of
from backlog_site.api.responses import (
    body_of,
    boolean_parameter,
    conditions_of,
    idempotency_key,
    no_body,
    read_response,
    refuse_conditions,
    text_of,
    with_etag,
)
from resources_app.addresses.uris import build
from resources_app.reading.serializers import comment_json, created_json
from resources_app.writing import batches, write_path


class ItemViewSet(ViewSet):
    collection: str
    kind: str
    lookup_value_regex = "[^/]+"

    def list(self, request: Request) -> Response:
        return read_response(request, self.collection)

    def retrieve(self, request: Request, pk: str) -> Response:
        return read_response(request, self.collection, pk)

    def create(self, request: Request) -> Response:
        actor, values = actor_of(request), body_of(request)
        refuse_conditions(request)
        created = batches.once(
            actor,
            idempotency_key(request),
            {"create": self.kind, "values": values},
            lambda: created_json(write_path.create_item(actor, self.kind, values)),
        )
        response = with_etag(Response(created, status=201), created["etag"])
        response["Location"] = f"/api/v1/{self.collection}/{created['id']}/"
        return response

    def partial_update(self, request: Request, pk: str) -> Response:
        _write(request, build(self.collection, pk), {"type": "merge", "value": body_of(request)})
        return read_response(request, self.collection, pk)

    def destroy(self, request: Request, pk: str) -> Response:
        """Archive the item; `?permanent=true` deletes it permanently and requires an admin."""
        no_body(request, "permanent")
        remove = (
            write_path.delete_permanently
            if boolean_parameter(request, "permanent")
            else write_path.archive
        )
        remove(actor_of(request), build(self.collection, pk), conditions_of(request))
        return Response(status=204)

    @action(detail=True, methods=["post"])
    def unarchive(self, request: Request, pk: str) -> Response:
        no_body(request)
        write_path.unarchive(actor_of(request), build(self.collection, pk), conditions_of(request))
        return read_response(request, self.collection, pk)

    @action(detail=True, methods=["get", "post"])
    def comments(self, request: Request, pk: str) -> Response:
        if request.method == "GET":
            return read_response(request, self.collection, pk, "comments")
        return _add_comment(
            request, build(self.collection, pk), body_of(request, "body").get("body")
        )


@schemas.describe_items("task")
class TaskViewSet(ItemViewSet):
    collection = "tasks"
    kind = "task"


@schemas.describe_items("epic")
class EpicViewSet(ItemViewSet):
    collection = "epics"
    kind = "epic"

    @extend_schema(
        operation_id="epics_tasks",
        parameters=schemas.query_parameters("task"),
        responses=schemas.page_of("task"),
    )
    @action(detail=True, methods=["get"])
    def tasks(self, request: Request, pk: str) -> Response:
        return read_response(request, "epics", pk, "tasks")


@schemas.describe_comments
class CommentViewSet(ViewSet):
    lookup_value_regex = "[^/]+"

    def list(self, request: Request) -> Response:
        return read_response(request, "comments")

    def retrieve(self, request: Request, pk: str) -> Response:
        return read_response(request, "comments", pk)

    def create(self, request: Request) -> Response:
        body = body_of(request, "item_id", "body")
        item = text_of(body, "item_id")
        return _add_comment(
            request, build("epics" if item.startswith("EPIC") else "tasks", item), body.get("body")
        )

    def partial_update(self, request: Request, pk: str) -> Response:
        operation = {"type": "set", "value": body_of(request, "body").get("body")}
        _write(request, build("comments", pk), operation)
        return read_response(request, "comments", pk)

    def destroy(self, request: Request, pk: str) -> Response:
        no_body(request)
        write_path.archive(actor_of(request), build("comments", pk), conditions_of(request))
        return Response(status=204)


def _write(request: Request, uri: str, operation: dict[str, Any]) -> None:
    actor, conditions = actor_of(request), conditions_of(request)
    batches.once(
        actor,
        idempotency_key(request),
        {"write": uri, "operation": operation} | conditions.fingerprint(),
        lambda: write_path.write(actor, uri, operation, conditions),
    )


def _add_comment(request: Request, item_uri: str, body: Any) -> Response:
    refuse_conditions(request)
    actor = actor_of(request)
    created = batches.once(
        actor,
        idempotency_key(request),
        {"comment": item_uri, "body": body},
        lambda: comment_json(write_path.add_comment(actor, item_uri, body)),
    )
    return with_etag(Response(created, status=201), created["etag"])
