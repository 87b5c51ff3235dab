"""Serve files over REST by path: /api/v1/resources/… and /api/v1/artifacts/….

PUT sends the raw bytes.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from django.http import HttpResponse
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from backlog_site.api.actors import actor_of
from backlog_site.api.parsers import BoundedJSONParser
from backlog_site.api.responses import (
    body_of,
    boolean_parameter,
    conditions_of,
    idempotency_key,
    if_changed,
    no_body,
    reading_response,
    refuse_conditions,
    text_of,
    with_etag,
)
from resources_app.addresses.uris import build_path
from resources_app.errors import ValidationFailed
from resources_app.files.contents import MAX_BINARY_BYTES, too_large
from resources_app.reading.by_address import read
from resources_app.reading.serializers import resource_json
from resources_app.writing import batches, stored_files

_FACTS = ("title", "description", "tags", "groups")
_OBJECT = {"type": "object", "additionalProperties": {}}
_ANSWER = {200: OpenApiResponse(_OBJECT)}
_DOWNLOAD = OpenApiParameter(
    "download", OpenApiTypes.BOOL, description="The bytes themselves, as an attachment"
)


class Upload(BaseParser):
    """Accept a body of any type unchanged, up to the size of the largest file."""

    media_type = "*/*"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, bytes]:
        raw: bytes = stream.read(MAX_BINARY_BYTES + 1)
        if len(raw) > MAX_BINARY_BYTES:
            raise too_large(MAX_BINARY_BYTES)
        return {"content": raw}


class _TreeSchema(AutoSchema):
    """Name operations apart.

    The generator sees the top of a tree and a path in it as one view and would give them one name.
    """

    def get_operation_id(self) -> str:
        return str(super().get_operation_id()).replace("retrieve", "list")


class FileTreeView(APIView):
    """List the top of a tree, or create a file in it."""

    area: str = "resources"
    schema = _TreeSchema()

    @extend_schema(responses=_ANSWER)
    def get(self, request: Request) -> Response | HttpResponse:
        return _read(request, self.area)

    @extend_schema(request={"application/json": _OBJECT}, responses={201: OpenApiResponse(_OBJECT)})
    def post(self, request: Request) -> Response:
        body = body_of(request, "path", "content", "encoding", "mime_type", *_FACTS)
        refuse_conditions(request)
        actor, path, content = actor_of(request), _path(self.area, body), _content(body)
        given = {name: body[name] for name in ("mime_type", *_FACTS) if name in body}
        shown = batches.once(
            actor,
            idempotency_key(request),
            {"create": self.area, "values": body},
            lambda: resource_json(stored_files.create_resource(actor, path, content, **given)),
        )
        response = with_etag(Response(shown, status=201), shown["etag"])
        response["Location"] = f"/api/v1/{quote(path)}"
        return response


class FileView(APIView):
    """Serve one file or folder by its path."""

    area: str = "resources"
    parser_classes = (BoundedJSONParser, Upload)

    def get_parsers(self) -> list[BaseParser]:
        """Return the raw parser for PUT, even when the file is JSON.

        PATCH carries JSON about the file.
        """
        return (
            [Upload()]
            if self.request is not None and self.request.method == "PUT"
            else [BoundedJSONParser()]
        )

    @extend_schema(parameters=[_DOWNLOAD], responses=_ANSWER)
    def get(self, request: Request, path: str) -> Response | HttpResponse:
        return _read(request, self.area, path)

    @extend_schema(request={"*/*": OpenApiTypes.BINARY}, responses=_ANSWER)
    def put(self, request: Request, path: str) -> Response:
        actor, full = actor_of(request), f"{self.area}/{path.strip('/')}"
        mime_type = (request.content_type or "").partition(";")[0].strip() or None
        # An empty body reaches no parser; it is an empty file.
        content = body_of(request, "content").get("content", b"")
        resource, is_new = stored_files.upload(
            actor, full, content, mime_type=mime_type, etag=conditions_of(request)
        )
        shown = resource_json(resource)
        return with_etag(Response(shown, status=201 if is_new else 200), shown["etag"])

    @extend_schema(request={"application/json": _OBJECT}, responses=_ANSWER)
    def patch(self, request: Request, path: str) -> Response:
        """Change the metadata of a file; a new `path` moves it."""
        body = dict(body_of(request, "path", *_FACTS))
        actor, full, conditions = (
            actor_of(request),
            f"{self.area}/{path.strip('/')}",
            conditions_of(request),
        )
        if "path" in body:
            body["path"] = _path(self.area, body)
        answer = batches.once(
            actor,
            idempotency_key(request),
            {"revise": full, "values": body} | conditions.fingerprint(),
            lambda: {"path": stored_files.revise(actor, full, body, conditions)},
        )
        return reading_response(request, read(actor, build_path(answer["path"])), whole=True)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, path: str) -> Response:
        no_body(request)
        stored_files.remove(
            actor_of(request), f"{self.area}/{path.strip('/')}", conditions_of(request)
        )
        return Response(status=204)


def _read(request: Request, *path: str) -> Response | HttpResponse:
    query = request.query_params.copy()
    query.pop("download", None)
    uri = build_path("/".join(path).rstrip("/"))
    reading = read(actor_of(request), uri + (f"?{query.urlencode()}" if query else ""))
    if not boolean_parameter(request, "download"):
        return reading_response(request, reading, whole=len(path) > 1)
    name = PurePosixPath(path[-1]).name
    return if_changed(request, reading.etag, lambda: _attachment(reading.contents, name))


def _attachment(contents: Any, name: str) -> HttpResponse:
    """Return the file as an attachment.

    The browser never renders it as a page of this site, regardless of its type.
    """
    if not isinstance(contents, str | bytes):
        contents = json.dumps(contents)
    response = HttpResponse(contents, content_type="application/octet-stream")
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(name)}"
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def _content(body: dict[str, Any]) -> str | bytes:
    content = body.get("content", "")
    if not isinstance(content, str):
        raise ValidationFailed("content must be a string.", field="content")
    if body.get("encoding") is None:
        return content
    if body["encoding"] != "base64":
        raise ValidationFailed(
            "encoding can only be base64.", field="encoding", allowed_values=["base64"]
        )
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationFailed("content is not base64.", field="content") from None


def _path(area: str, body: dict[str, Any]) -> str:
    """Return the full path.

    Accepts it as responses write it, resources/a.md, or relative to the tree, a.md.
    """
    return f"{area}/{text_of(body, 'path').removeprefix(f'{area}/')}"
