"""Serve context over REST: an item or file with its surroundings, within a token budget."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from backlog_site.api.actors import actor_of
from backlog_site.api.responses import parameter
from resources_app.querying.queries import whole_number
from search_app.context import DEFAULT_TOKENS, build_context

_PARAMETERS = [
    OpenApiParameter(
        "id", OpenApiTypes.STR, description="TASK-0001, or any address of a task, epic or file"
    ),
    OpenApiParameter(
        "query", OpenApiTypes.STR, description="instead of an id: the best hit is the focus"
    ),
    OpenApiParameter("max_tokens", OpenApiTypes.INT),
    OpenApiParameter("depth", OpenApiTypes.INT),
]


@extend_schema(
    parameters=_PARAMETERS,
    responses={200: OpenApiResponse({"type": "object", "additionalProperties": {}})},
)
@api_view(["GET"])
def context(request: Request) -> Response:
    tokens = parameter(request, "max_tokens", "id", "query", "depth", default=str(DEFAULT_TOKENS))
    return Response(
        build_context(
            actor_of(request).user,
            id=request.query_params.get("id"),
            query=request.query_params.get("query"),
            max_tokens=whole_number("max_tokens", tokens, 1, 10**6),
            depth=whole_number("depth", request.query_params.get("depth", "1"), 1, 9),
        )
    )
