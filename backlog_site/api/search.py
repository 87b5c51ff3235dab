"""Serve GET /api/v1/search/ by turning the query string into one search call."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.decorators import api_view
from rest_framework.request import Request
from rest_framework.response import Response

from backlog_site.api.actors import actor_of
from resources_app.errors import ValidationFailed
from resources_app.querying.queries import whole_number
from resources_app.reading.read_many import MAX_TOKENS, MIN_TOKENS
from search_app.filters import TYPES
from search_app.search import MAX_LIMIT, SORTS, search_unified

_LISTS = ("types", "status", "label")
_TEXTS = ("parent_id", "assignee", "sort", "cursor")
_FLAGS = ("include_content", "include_scores", "explain")
PARAMETERS = ("q", *_LISTS, *_TEXTS, "limit", *_FLAGS, "max_tokens")


@extend_schema(
    operation_id="search",
    parameters=[
        OpenApiParameter(
            "q", OpenApiTypes.STR, required=True, description="Words, an id, an identifier, a title"
        ),
        OpenApiParameter(
            "types", OpenApiTypes.STR, description=f"Some of {', '.join(TYPES)}, with commas"
        ),
        OpenApiParameter("status", OpenApiTypes.STR, many=True),
        OpenApiParameter(
            "parent_id", OpenApiTypes.STR, description="An epic's id or a folder's path"
        ),
        OpenApiParameter("assignee", OpenApiTypes.STR),
        OpenApiParameter("label", OpenApiTypes.STR, many=True),
        OpenApiParameter("sort", OpenApiTypes.STR, enum=list(SORTS)),
        OpenApiParameter("limit", OpenApiTypes.INT, description=f"1 to {MAX_LIMIT}"),
        OpenApiParameter("cursor", OpenApiTypes.STR, description="The next_cursor of an answer"),
        *(OpenApiParameter(name, OpenApiTypes.BOOL) for name in _FLAGS),
        OpenApiParameter(
            "max_tokens",
            OpenApiTypes.INT,
            description="Where a page ends although more would match",
        ),
    ],
    responses={200: OpenApiResponse({"type": "object", "additionalProperties": {}})},
)
@api_view(["GET"])
def search(request: Request) -> Response:
    given = request.query_params
    if unknown := sorted(set(given) - set(PARAMETERS)):
        raise ValidationFailed(
            f"Unknown parameter {unknown[0]!r}.", field=unknown[0], allowed_values=list(PARAMETERS)
        )
    if repeated := [name for name in given if name not in _LISTS and len(given.getlist(name)) > 1]:
        raise ValidationFailed(
            f"{repeated[0]} can be given once.", field=repeated[0], value=given.getlist(repeated[0])
        )
    if "q" not in given:
        raise ValidationFailed("The parameter q is needed.", field="q", required=["q"])
    options: dict[str, Any] = {
        name: _list(given.getlist(name), name) for name in _LISTS if name in given
    }
    options |= {name: given[name] for name in _TEXTS if name in given}
    options |= {name: _flag(name, given[name]) for name in _FLAGS if name in given}
    if "limit" in given:
        options["limit"] = whole_number("limit", given["limit"], 1, MAX_LIMIT)
    if "max_tokens" in given:
        options["max_tokens"] = whole_number(
            "max_tokens", given["max_tokens"], MIN_TOKENS, MAX_TOKENS
        )
    return Response(search_unified(actor_of(request).user, given["q"], **options))


def _list(values: list[str], name: str) -> list[str]:
    """Return the values, given several times or once with commas. A label may contain a comma."""
    return values if name == "label" else [part for value in values for part in value.split(",")]


def _flag(name: str, value: str) -> bool:
    if value not in {"true", "false", "1", "0"}:
        raise ValidationFailed(
            f"{name} must be true or false.",
            field=name,
            value=value,
            allowed_values=["true", "false"],
        )
    return value in {"true", "1"}
