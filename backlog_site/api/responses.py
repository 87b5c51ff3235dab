"""From a reading or a written thing to an HTTP answer: body, ETag, 304."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from backlog_site.api.actors import actor_of
from resources_app.errors import ValidationFailed
from resources_app.etags import normalise
from resources_app.readers.reading import Reading
from resources_app.reading import read
from resources_app.uris import build


def read_response(request: Request, *segments: str, whole: bool = False) -> Response:
    """Reads mcp://backlog/<segments>?<the request's query>; `whole` answers with the metadata around the contents."""
    query = request.META.get("QUERY_STRING", "")
    reading = read(actor_of(request), build(*segments) + (f"?{query}" if query else ""))
    return reading_response(request, reading, whole=whole)


def reading_response(request: Request, reading: Reading, *, whole: bool) -> Response:
    if _is_known(request, reading.etag):
        return with_etag(Response(status=304), reading.etag)
    return with_etag(Response(reading.as_json() if whole else reading.contents), reading.etag)


def with_etag(response: Response, etag: str) -> Response:
    response["ETag"] = f'"{etag}"'
    response["Cache-Control"] = "private, no-cache"
    return response


def if_match(request: Request) -> str | None:
    return request.headers.get("If-Match")


def must_be_new(request: Request) -> bool:
    return request.headers.get("If-None-Match", "").strip() == "*"


def idempotency_key(request: Request) -> str | None:
    return request.headers.get("Idempotency-Key")


def body_of(request: Request, *known: str) -> dict[str, Any]:
    """The JSON object of the request; with `known`, a name beyond them is refused."""
    body = request.data
    if not isinstance(body, dict):
        raise ValidationFailed("The body must be a JSON object.", field="body")
    if known and (unknown := sorted(set(body) - set(known))):
        raise ValidationFailed(f"Unknown field {unknown[0]!r}.", field=unknown[0], allowed_values=list(known))
    return body


def parameter(request: Request, name: str, *others: str, default: str | None = None) -> str:
    """One query parameter; anything but it and `others` is refused."""
    if unknown := sorted(set(request.query_params) - {name, *others}):
        raise ValidationFailed(f"Unknown parameter {unknown[0]!r}.", field=unknown[0], allowed_values=[name, *others])
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


def _is_known(request: Request, etag: str) -> bool:
    known = request.headers.get("If-None-Match", "")
    return known.strip() == "*" or etag in {normalise(part) for part in known.split(",")}
