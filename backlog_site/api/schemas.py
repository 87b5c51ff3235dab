"""Build the OpenAPI description from the field declarations and the query parameters."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    extend_schema,
    extend_schema_view,
    inline_serializer,
)
from rest_framework import serializers

from resources_app.fields.declarations import FIELDS, Field
from resources_app.models import Epic, Task
from resources_app.querying.queries import parameters_for

View = TypeVar("View", bound=type)


def _field(declared: Field) -> serializers.Field[Any, Any, Any, Any]:
    options: dict[str, Any] = {"help_text": declared.description, "required": declared.required}
    if not declared.writable:
        options = {"help_text": declared.description, "read_only": True}
    if declared.choices:
        return serializers.ChoiceField(choices=list(declared.choices), **options)
    if declared.shape == "array":
        is_objects = declared.type == "references"
        text = serializers.CharField()
        child = serializers.DictField(child=text) if is_objects else text
        return serializers.ListField(child=child, **options)
    if declared.type == "count":
        return serializers.IntegerField(**options)
    if declared.type == "date":
        return serializers.DateField(allow_null=True, **options)
    if declared.type == "number":
        options |= {"min_value": declared.minimum, "max_value": declared.maximum}
        return serializers.FloatField(allow_null=True, **options)
    return serializers.CharField(
        max_length=declared.max_length, allow_null=not declared.required, **options
    )


@cache
def _class_of(kind: str) -> Any:
    """Return one class per kind.

    The generator would turn two classes of the same name into two components.
    """
    fields: dict[str, Any] = {name: _field(declared) for name, declared in FIELDS[kind].items()}
    return type(inline_serializer(kind.capitalize(), fields))


def shape_of(kind: str, *, many: bool = False) -> Any:
    return _class_of(kind)(many=many)


@cache
def page_of(kind: str) -> Any:
    parts: dict[str, Any] = {
        "results": shape_of(kind, many=True),
        "total": serializers.IntegerField(),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    return inline_serializer(f"{kind.capitalize()}Page", parts)


@cache
def error_shape() -> Any:
    details: dict[str, Any] = {
        "code": serializers.CharField(),
        "message": serializers.CharField(),
        "details": serializers.DictField(),
        "suggestion": serializers.CharField(),
        "retryable": serializers.BooleanField(),
    }
    return inline_serializer("Error", {"error": inline_serializer("ErrorBody", details)})


def query_parameters(kind: str) -> list[OpenApiParameter]:
    names = parameters_for(Task if kind == "task" else Epic)
    return [
        OpenApiParameter(name, OpenApiTypes.STR, many=name in {"status", "priority", "label"})
        for name in names
    ]


_VERSION = OpenApiParameter("version", OpenApiTypes.INT, description="Read it as it was")
_IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="The ETag you read"
)
_IF_NONE_MATCH = OpenApiParameter("If-None-Match", OpenApiTypes.STR, OpenApiParameter.HEADER)
_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="A repeat returns the first answer",
)
_PERMANENT = OpenApiParameter(
    "permanent", OpenApiTypes.BOOL, description="Delete for good (admins)"
)


def _with_errors(success: Any, *codes: int, status: int = 200) -> dict[int, Any]:
    return {status: success} | dict.fromkeys((400, 401, *codes), error_shape())


def describe_items(kind: str) -> Callable[[View], View]:
    shape, comment = shape_of(kind), shape_of("comment")
    described: Callable[[View], View] = extend_schema_view(
        list=extend_schema(
            parameters=query_parameters(kind), responses=_with_errors(page_of(kind))
        ),
        retrieve=extend_schema(
            parameters=[_VERSION, _IF_NONE_MATCH], responses=_with_errors(shape, 404)
        ),
        create=extend_schema(
            parameters=[_KEY], request=shape, responses=_with_errors(shape, 403, status=201)
        ),
        partial_update=extend_schema(
            parameters=[_IF_MATCH], request=shape, responses=_with_errors(shape, 403, 404, 409)
        ),
        destroy=extend_schema(
            parameters=[_IF_MATCH, _PERMANENT],
            responses=_with_errors(None, 403, 404, 409, status=204),
        ),
        unarchive=extend_schema(request=None, responses=_with_errors(shape, 403, 404)),
        comments=extend_schema(
            request=comment, responses=_with_errors(comment, 403, 404, status=201)
        ),
    )
    return described


def describe_comments(view: View) -> View:
    shape = shape_of("comment")
    new = inline_serializer(
        "NewComment", {"item_id": serializers.CharField(), "body": serializers.CharField()}
    )
    item = OpenApiParameter("item", OpenApiTypes.STR, description="TASK-0001 or EPIC-0001")
    described: View = extend_schema_view(
        list=extend_schema(parameters=[item], responses=_with_errors(page_of("comment"))),
        retrieve=extend_schema(responses=_with_errors(shape, 404)),
        create=extend_schema(
            parameters=[_KEY], request=new, responses=_with_errors(shape, 403, 404, status=201)
        ),
        partial_update=extend_schema(
            parameters=[_IF_MATCH], request=shape, responses=_with_errors(shape, 403, 404, 409)
        ),
        destroy=extend_schema(
            parameters=[_IF_MATCH], responses=_with_errors(None, 403, 404, status=204)
        ),
    )(view)
    return described
