"""Turn a reading or a written object into an HTTP response with body, ETag and 304."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.http import HttpResponse
from django.utils.http import parse_http_date_safe
from rest_framework.request import Request
from rest_framework.response import Response

from backlog_site.api.actors import actor_of
from resources_app.addresses.uris import build
from resources_app.errors import Conflict, ValidationFailed
from resources_app.history.preconditions import EntityTags, Preconditions, parse_tags
from resources_app.reading.by_address import read
from resources_app.reading.result import Reading

CONDITIONAL = ("If-Match", "If-None-Match", "If-Unmodified-Since")
R = TypeVar("R", bound=HttpResponse)


def read_response(request: Request, *segments: str, whole: bool = False) -> Response:
    """Read mcp://backlog/<segments>?<the request's query>.

    `whole` includes the metadata around the contents.
    """
    query = request.META.get("QUERY_STRING", "")
    reading = read(actor_of(request), build(*segments) + (f"?{query}" if query else ""))
    return reading_response(request, reading, whole=whole)


def reading_response(request: Request, reading: Reading, *, whole: bool) -> Response:
    return if_changed(
        request, reading.etag, lambda: Response(reading.as_json() if whole else reading.contents)
    )


def if_changed(request: Request, etag: str, answer: Callable[[], R]) -> R | Response:
    """Answer 304 when the reader already has this state.

    The conditions of a write were checked when it was written.
    """
    conditions = conditions_of(request) if request.method in ("GET", "HEAD") else Preconditions()
    if conditions.if_match and not conditions.if_match.match_strongly(etag):
        raise Conflict(
            "The resource has another ETag than If-Match asks for.", current_etag=etag, diff=None
        )
    return with_etag(Response(status=304) if conditions.is_excluded(etag) else answer(), etag)


def with_etag(response: R, etag: str) -> R:
    response["ETag"] = f'"{etag}"'
    response["Cache-Control"] = "private, no-cache"
    return response


def conditions_of(request: Request, etag: Any = None) -> Preconditions:
    """Return the conditional headers of the request together with the ETag of its body.

    All of them must hold.
    """
    matched, excluded = (_tags(request, header) for header in ("If-Match", "If-None-Match"))
    since = None if matched else _date(request, "If-Unmodified-Since")
    return Preconditions(etag, matched, excluded, since)


def _tags(request: Request, header: str) -> EntityTags | None:
    value = request.headers.get(header)
    return None if value is None else parse_tags(header, value)


def _date(request: Request, header: str) -> datetime | None:
    value = request.headers.get(header)
    if value is None:
        return None
    seconds = parse_http_date_safe(value)
    if seconds is None:
        raise ValidationFailed(
            f"{header} must be a date as HTTP writes it.", field=header, value=value[:200]
        )
    return datetime.fromtimestamp(seconds, UTC)


def refuse_conditions(request: Request) -> None:
    """Reject conditions on a request that creates something or has no single target.

    `If-None-Match: *` is implied by creating.
    """
    conditions = conditions_of(request)
    if conditions.if_none_match and conditions.if_none_match.anything:
        conditions = replace(conditions, if_none_match=None)
    if conditions:
        header = next(name for name in CONDITIONAL if name in request.headers)
        raise ValidationFailed(
            f"{header} has no meaning here.",
            suggestion="Leave the header out. An operation of a batch carries its ETag as etag.",
            field=header,
            value=request.headers[header][:200],
        )


def idempotency_key(request: Request, body: dict[str, Any] | None = None) -> Any:
    """Return the key of the header or of the body. Rejects two different keys."""
    header, given = request.headers.get("Idempotency-Key"), (body or {}).get("idempotency_key")
    if header is not None and given not in (None, header):
        raise ValidationFailed(
            "Idempotency-Key and idempotency_key differ.",
            field="idempotency_key",
            value=given,
            header=header,
        )
    return header if given is None else given


def body_of(request: Request, *known: str) -> dict[str, Any]:
    """Return the JSON object of a write request.

    Rejects query parameters and, with `known`, any other field.
    """
    refuse_parameters(request)
    body = request.data
    if not isinstance(body, dict):
        raise ValidationFailed("The body must be a JSON object.", field="body")
    if known and (unknown := sorted(set(body) - set(known))):
        raise ValidationFailed(
            f"Unknown field {unknown[0]!r}.", field=unknown[0], allowed_values=list(known)
        )
    return body


def no_body(request: Request, *parameters: str) -> None:
    """Reject a body and other parameters on a request that is fully described by its address."""
    refuse_parameters(request, *parameters)
    if request.data:
        raise ValidationFailed("This request takes no body.", field="body")


def refuse_parameters(request: Request, *known: str) -> None:
    """Reject query parameters beyond `known`, and repeated ones."""
    for name, values in request.query_params.lists():
        if name not in known:
            raise ValidationFailed(
                f"Unknown parameter {name!r}.", field=name, allowed_values=list(known)
            )
        if len(values) > 1:
            raise ValidationFailed(f"{name} can be given once.", field=name, value=values)


def boolean_parameter(request: Request, name: str) -> bool:
    values = request.query_params.getlist(name) or ["false"]
    if len(values) > 1 or values[0] not in {"true", "false", "1", "0"}:
        raise ValidationFailed(
            f"{name} must be true or false, once.",
            field=name,
            value=values,
            allowed_values=["true", "false"],
        )
    return values[0] in {"true", "1"}


def parameter(request: Request, name: str, *others: str, default: str | None = None) -> str:
    """Return one query parameter. Rejects any parameter other than it and `others`."""
    refuse_parameters(request, name, *others)
    value: str | None = request.query_params.get(name, default)
    if value is None:
        raise ValidationFailed(f"The parameter {name} is needed.", field=name, required=[name])
    return value


def text_of(body: dict[str, Any], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ValidationFailed(f"{name} must be given as a string.", field=name, value=value)
    return value


def flag(body: dict[str, Any], name: str, default: bool) -> bool:
    value = body.get(name, default)
    if not isinstance(value, bool):
        raise ValidationFailed(f"{name} must be true or false.", field=name, value=value)
    return value
