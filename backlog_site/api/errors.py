"""Render every error of REST, MCP over HTTP and the health endpoints in the one error body of the
contract.
"""

import math
import sys
from collections.abc import Awaitable, Callable
from functools import singledispatch
from typing import Any

import structlog
from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.conf import settings
from django.core.exceptions import BadRequest, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.signals import got_request_exception
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponse, HttpResponseBase
from rest_framework import exceptions as drf
from rest_framework.views import set_rollback

from backlog_site.api.actors import request_id
from backlog_site.api.limits import BodyTooLarge
from backlog_site.serving.challenges import bearer_challenge
from backlog_site.serving.outage import outage
from resources_app import errors
from resources_app.database import schema
from resources_app.errors import BacklogError

JSON_PATHS = ("/api", "/mcp", "/healthz", "/readyz", "/.well-known")
RETRY_AFTER_SECONDS = 2

_BY_STATUS: dict[int, type[BacklogError]] = {
    401: errors.Unauthenticated,
    403: errors.PermissionDenied,
    404: errors.NotFound,
    405: errors.InvalidOperation,
    429: errors.RateLimited,
    503: errors.Unavailable,
}
_SUGGESTIONS = {
    400: "Correct the request and send it again.",
    403: (
        "Check your role and the scope of your token; a browser session must send its CSRF token as"
        " X-CSRFToken."
    ),
    404: "Check the id or path, which ends with a slash; /api/docs/ lists the paths.",
    406: "Accept application/json.",
    415: "Send the body as application/json.",
}

logger = structlog.get_logger("backlog.errors")


class InternalError(BacklogError):
    code = "internal_error"
    status = 500
    suggestion = "This is a fault of the server: tell its operator the request id in details."

    def __init__(self) -> None:
        super().__init__("Something went wrong on the server.", request_id=request_id())


def exception_response(exc: Exception, context: dict[str, Any]) -> HttpResponse:
    """Handle exceptions as REST framework's EXCEPTION_HANDLER."""
    set_rollback()
    error = translate(exc)
    if isinstance(exc, drf.MethodNotAllowed):
        error.details["allowed"] = context["view"].allowed_methods
    return _answer(error, context["request"]._request)


def error_of_status(status: int, message: str, **details: Any) -> BacklogError:
    if status >= 500 and status not in _BY_STATUS:
        return InternalError()
    error = _BY_STATUS.get(status, errors.ValidationFailed)(
        message, suggestion=_SUGGESTIONS.get(status), **details
    )
    error.status = status
    return error


@singledispatch
def translate(exc: BaseException) -> BacklogError:
    return InternalError()


@translate.register
def _(exc: BacklogError) -> BacklogError:
    return exc


@translate.register
def _(exc: Http404) -> BacklogError:
    return error_of_status(404, "Not found.")


@translate.register
def _(exc: DjangoPermissionDenied) -> BacklogError:
    return error_of_status(403, str(exc) or "You may not do this.")


@translate.register(BadRequest)
@translate.register(SuspiciousOperation)
def _(exc: Exception) -> BacklogError:
    return error_of_status(400, "The request cannot be accepted.")


@translate.register
def _(exc: RequestDataTooBig) -> BacklogError:
    return BodyTooLarge(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)


@translate.register
def _(exc: drf.APIException) -> BacklogError:
    return error_of_status(exc.status_code, str(exc.detail))


@translate.register
def _(exc: drf.ValidationError) -> BacklogError:
    return error_of_status(400, "The request has invalid values.", errors=exc.detail)


@translate.register
def _(exc: drf.Throttled) -> BacklogError:
    seconds = math.ceil(getattr(exc, "wait", None) or RETRY_AFTER_SECONDS)
    return errors.RateLimited(
        "Too many requests.", suggestion=f"Wait {seconds} seconds.", retry_after=seconds
    )


@translate.register(DatabaseError)
@translate.register(InterfaceError)
def _(exc: DatabaseError | InterfaceError) -> BacklogError:
    """Translate database errors.

    A busy database or one of another release is worth a retry; a wrong statement is not.
    """
    refused = schema.refusal_of(exc)
    if refused is None:
        return InternalError()
    logger.warning("database_unavailable", reason=str(exc))
    outage.suspect(exc)
    return refused


def _answer(error: BacklogError, request: HttpRequest) -> HttpResponse:
    if isinstance(error, InternalError):
        # As Django does for uncaught exceptions: the receivers log it with the request id, and
        # tests see it raised.
        got_request_exception.send(sender=None, request=request)
    return JsonResponse(
        {"error": error.as_json()}, status=error.status, headers=_headers(error, request)
    )


def _headers(error: BacklogError, request: HttpRequest) -> dict[str, str]:
    if error.status == 401:
        return {"WWW-Authenticate": bearer_challenge(request.META.get("HTTP_HOST", ""))}
    if error.status in (429, 503):
        return {"Retry-After": str(error.details.get("retry_after", RETRY_AFTER_SECONDS))}
    return {}


class JsonErrorsMiddleware:
    """Replace Django's HTML error pages with the JSON error body on paths that programs call."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        got_request_exception.connect(_remember_failure)
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return (
            self._call_async(request)
            if self._is_async
            else _as_json(request, self.get_response(request))
        )

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        return _as_json(request, await self.get_response(request))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Translate an exception raised by a view outside REST framework."""
        return _answer(translate(exception), request) if _speaks_json(request) else None


def _remember_failure(request: HttpRequest, **_: Any) -> None:
    """Remember a failure outside the views, such as a database error in another middleware.

    Django's response drops it.
    """
    failure = sys.exc_info()[1]
    if failure and _speaks_json(request):
        request.failure = translate(failure)  # type: ignore[attr-defined]  # read back below


def _as_json(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if (
        response.status_code < 400
        or not isinstance(response, HttpResponse)
        or not _speaks_json(request)
    ):
        return response
    if "json" in response.headers.get("Content-Type", ""):
        return response
    error = getattr(request, "failure", None) or _error_of_page(request, response)
    return _replaced(request, response, error)


def _error_of_page(request: HttpRequest, response: HttpResponse) -> BacklogError:
    if response.status_code == 404:
        return error_of_status(404, f"There is nothing at {request.path}.")
    if response.status_code == 405:
        allowed = response.headers.get("Allow", "").split(", ")
        return error_of_status(
            405, f"The method {request.method} is not allowed here.", allowed=allowed
        )
    return error_of_status(
        response.status_code, f"The request was refused: {response.reason_phrase}."
    )


def _replaced(request: HttpRequest, response: HttpResponse, error: BacklogError) -> HttpResponse:
    """Replace the page with the JSON error and keep its headers and cookies."""
    answer = JsonResponse({"error": error.as_json()})
    response.status_code = error.status
    response.content = answer.content
    response.headers["Content-Type"] = answer.headers["Content-Type"]
    response.headers["Content-Length"] = str(len(answer.content))
    for name, value in _headers(error, request).items():
        response.headers[name] = value
    return response


def _speaks_json(request: HttpRequest) -> bool:
    return is_json_path(request.path)


def is_json_path(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in JSON_PATHS)
