"""Serve IntelligenceBank over REST: ib:// resources, thumbnails, downloads, and linking the user's
account.
"""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import TypeVar
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from backlog_site.api.actors import actor_of
from backlog_site.api.responses import (
    no_body,
    reading_response,
    refuse_conditions,
    refuse_parameters,
)
from resources_app.intelligencebank import browsing, files, linking
from resources_app.reading.by_address import read

Answer = TypeVar("Answer", bound=HttpResponseBase)
_ANSWER = {200: OpenApiResponse({"type": "object", "additionalProperties": {}})}
_PAGE = [OpenApiParameter("limit", OpenApiTypes.INT), OpenApiParameter("cursor", OpenApiTypes.STR)]


@extend_schema(operation_id="ib_connections", responses=_ANSWER)
@api_view(["GET"])
def connections(request: Request) -> Response:
    refuse_parameters(request)
    return Response({"results": browsing.list_connections(actor_of(request).user)})


@extend_schema(operation_id="ib_folder", parameters=_PAGE, responses=_ANSWER)
@api_view(["GET"])
def folder(request: Request, client_id: str, ib_id: str) -> Response:
    return _read(request, client_id, "folders", ib_id)


@extend_schema(operation_id="ib_folder_resources", parameters=_PAGE, responses=_ANSWER)
@api_view(["GET"])
def folder_resources(request: Request, client_id: str, ib_id: str) -> Response:
    return _read(request, client_id, "folders", ib_id, "resources")


@extend_schema(operation_id="ib_resource", responses=_ANSWER)
@api_view(["GET"])
def resource(request: Request, client_id: str, ib_id: str) -> Response:
    return _read(request, client_id, "resources", ib_id)


def _read(request: Request, client_id: str, *segments: str) -> Response:
    path = "/".join(quote(segment, safe="") for segment in segments)
    query = request.META.get("QUERY_STRING", "")
    reading = read(actor_of(request), f"ib://{client_id}/{path}" + (f"?{query}" if query else ""))
    return reading_response(request, reading, whole=False)


@extend_schema(operation_id="ib_thumbnail", responses={(200, "image/*"): OpenApiTypes.BINARY})
@api_view(["GET"])
def thumbnail(request: Request, client_id: str, area: str, ib_id: str) -> HttpResponse:
    refuse_parameters(request)
    picture = files.thumbnail(actor_of(request).user, client_id, area, ib_id)
    response = HttpResponse(picture.content, content_type=picture.mime_type)
    response["Cache-Control"] = "private, max-age=300"
    return _harmless(response)


@extend_schema(
    operation_id="ib_download", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}
)
@api_view(["GET"])
def download(request: Request, client_id: str, ib_id: str) -> StreamingHttpResponse:
    refuse_parameters(request)
    found = files.download(actor_of(request).user, client_id, ib_id)
    response = StreamingHttpResponse(
        _streamed(found.chunks()), content_type="application/octet-stream"
    )
    response["Content-Length"] = str(found.size)
    response["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(found.name)}"
    response["Cache-Control"] = "private, no-store"
    return _harmless(response)


async def _streamed(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Stream the chunks asynchronously.

    Django would read a plain iterator into memory before sending the first byte.
    """
    while part := await sync_to_async(partial(next, chunks, b""), thread_sensitive=False)():
        yield part


def _harmless(response: Answer) -> Answer:
    """Stop the browser from running a file as a page of this site, regardless of its type."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


class LinkView(APIView):
    """Link the user's account.

    POST begins a sign-in, GET checks whether it is finished, DELETE removes the link.
    """

    @extend_schema(operation_id="ib_link_status", responses=_ANSWER)
    def get(self, request: Request, client_id: str) -> Response:
        refuse_parameters(request)
        return Response(linking.check(actor_of(request).user, client_id))

    @extend_schema(operation_id="ib_link_begin", request=None, responses=_ANSWER)
    def post(self, request: Request, client_id: str) -> Response:
        no_body(request)
        refuse_conditions(request)
        return Response(linking.begin(actor_of(request).user, client_id))

    @extend_schema(operation_id="ib_link_forget", responses={204: None})
    def delete(self, request: Request, client_id: str) -> Response:
        no_body(request)
        refuse_conditions(request)
        linking.unlink(actor_of(request).user, client_id)
        return Response(status=204)
