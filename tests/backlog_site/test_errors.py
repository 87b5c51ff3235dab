"""Test that all errors have one body, raised by the domain, REST framework, Django, the database or
a bug.
"""

import asyncio
import logging
import sqlite3
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.test import AsyncClient, Client
from django.urls import path
from django.views.decorators.csrf import csrf_protect
from rest_framework import exceptions as drf
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from backlog_site.api.actors import actor_of
from resources_app import errors
from resources_app.identity import tokens


def locked_database() -> OperationalError:
    cause = sqlite3.OperationalError("database is locked")
    cause.sqlite_errorcode = sqlite3.SQLITE_BUSY
    error = OperationalError("database is locked")
    error.__cause__ = cause
    return error


def missing_table() -> OperationalError:
    cause = sqlite3.OperationalError("no such table: secrets")
    cause.sqlite_errorcode = sqlite3.SQLITE_ERROR
    error = OperationalError("no such table: secrets")
    error.__cause__ = cause
    return error


RAISED: dict[str, Callable[[], Exception]] = {
    "domain": lambda: errors.Conflict("Stale.", current_etag="x"),
    "http404": lambda: Http404("No Secret matches the given query."),
    "denied": PermissionDenied,
    "suspicious": lambda: SuspiciousOperation("/etc/passwd"),
    "too-big": RequestDataTooBig,
    "parse": lambda: drf.ParseError("Broken."),
    "invalid": lambda: drf.ValidationError({"title": ["Too long."]}),
    "throttled": lambda: drf.Throttled(wait=6.2),
    "locked": locked_database,
    "missing-table": missing_table,
    "disconnected": lambda: InterfaceError("connection already closed"),
    "bug": lambda: RuntimeError("the password is hunter2"),
}
EXPECTED = {
    "domain": (409, "conflict"),
    "http404": (404, "not_found"),
    "denied": (403, "permission_denied"),
    "suspicious": (400, "validation_failed"),
    "too-big": (413, "validation_failed"),
    "parse": (400, "validation_failed"),
    "invalid": (400, "validation_failed"),
    "throttled": (429, "rate_limited"),
    "locked": (503, "unavailable"),
    "missing-table": (500, "internal_error"),
    "disconnected": (503, "unavailable"),
    "bug": (500, "internal_error"),
}


class Raising(APIView):
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def get(self, request: Request, name: str) -> Response:
        raise RAISED[name]()


class Echo(APIView):
    def get(self, request: Request) -> Response:
        actor = actor_of(request)
        return Response(
            {
                "user": actor.user.username,
                "agent": actor.agent,
                "scope": actor.scope,
                "id": actor.request_id,
            }
        )

    def post(self, request: Request) -> Response:
        return Response(request.data)


def raise_plainly(request: HttpRequest, name: str) -> HttpResponse:
    raise RAISED[name]()


@csrf_protect
def guarded(request: HttpRequest) -> HttpResponse:
    return HttpResponse("in")


urlpatterns = [
    path("api/v1/raise/<name>/", Raising.as_view()),
    path("api/v1/plain/<name>/", raise_plainly),
    path("api/v1/echo/", Echo.as_view()),
    path("api/v1/guarded/", guarded),
    path("page/<name>/", raise_plainly),
]
pytestmark = [pytest.mark.urls(__name__)]


@pytest.fixture(params=[True, False], ids=["debug", "production"])
def client(request: pytest.FixtureRequest, settings: Any) -> Client:
    settings.DEBUG = request.param
    return Client(raise_request_exception=False, enforce_csrf_checks=True)


def error_in(response: Any, status: int, code: str) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/json"
    assert set(response.json()) == {"error"}
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"code", "message", "details", "suggestion", "retryable"}
    assert error["code"] == code
    assert error["message"]
    return error


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.parametrize("door", ["raise", "plain"])
def test_whatever_a_view_raises_leaves_in_the_one_body(
    client: Client, door: str, name: str
) -> None:
    error_in(client.get(f"/api/v1/{door}/{name}/"), *EXPECTED[name])


@pytest.mark.parametrize("door", ["raise", "plain"])
def test_no_internals_leave_with_an_error(client: Client, door: str) -> None:
    for name in RAISED:
        body = client.get(f"/api/v1/{door}/{name}/").content.decode()
        assert not any(
            word in body for word in ("hunter2", "secrets", "/etc/passwd", "Traceback", "<html")
        )


def test_a_page_for_people_stays_a_page(client: Client) -> None:
    response = client.get("/page/http404/")
    assert (response.status_code, response.headers["Content-Type"]) == (
        404,
        "text/html; charset=utf-8",
    )


@pytest.mark.parametrize(
    "path", ["/api/v1/nope/", "/api/nope", "/api", "/mcp/nope", "/.well-known/nope"]
)
def test_an_unknown_address_is_not_found(client: Client, path: str) -> None:
    assert path in error_in(client.get(path), 404, "not_found")["message"]


def test_a_path_that_only_begins_like_the_api_is_not_the_api(client: Client) -> None:
    assert client.get("/apiary/").headers["Content-Type"].startswith("text/html")


def test_a_wrong_method_names_the_allowed_ones(client: Client) -> None:
    assert (
        "GET"
        in error_in(client.delete("/api/v1/raise/bug/"), 405, "invalid_operation")["details"][
            "allowed"
        ]
    )


@pytest.mark.parametrize("name", ["locked", "throttled"])
def test_what_passes_says_when_to_come_back(client: Client, name: str) -> None:
    response = client.get(f"/api/v1/raise/{name}/")
    assert response.json()["error"]["retryable"] is True
    assert response.headers["Retry-After"] == {"locked": "2", "throttled": "7"}[name]


def test_a_missing_csrf_token_is_explained_in_json(client: Client) -> None:
    assert (
        "X-CSRFToken"
        in error_in(client.post("/api/v1/guarded/"), 403, "permission_denied")["suggestion"]
    )


def test_a_foreign_host_is_refused_in_json(client: Client) -> None:
    error_in(
        client.get("/api/v1/echo/", headers={"host": "evil.example"}), 400, "validation_failed"
    )


def test_a_bug_is_logged_under_the_request_id_that_the_caller_is_told(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, logger="django_structlog"):
        error = error_in(client.get("/api/v1/raise/bug/"), 500, "internal_error")
    (record,) = [record for record in caplog.records if "request_failed" in record.getMessage()]
    assert error["details"] == {"request_id": record.msg["request_id"]}  # type: ignore[index]  # structlog's
    assert record.exc_info and "hunter2" in str(record.exc_info[1])


def test_a_database_lost_outside_of_the_views_is_unavailable_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: HttpRequest) -> None:
        raise InterfaceError("connection already closed")

    monkeypatch.setattr(
        "django.contrib.auth.middleware.AuthenticationMiddleware.process_request",
        lambda _, r: lost(r),
    )
    client.handler.load_middleware()
    error_in(client.get("/api/v1/echo/"), 503, "unavailable")


def test_errors_have_the_same_body_under_asgi() -> None:
    async def ask() -> list[Any]:
        client = AsyncClient(raise_request_exception=False)
        return [
            await client.get(path)
            for path in ("/api/v1/nope/", "/api/v1/plain/bug/", "/api/v1/raise/locked/")
        ]

    unknown, bug, locked = asyncio.run(ask())
    error_in(unknown, 404, "not_found")
    error_in(bug, 500, "internal_error")
    error_in(locked, 503, "unavailable")


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer bl_wrong", "Bearer ünïcode", "Basic YTpi", "Token x"],
)
def test_without_a_valid_token_the_answer_is_401_and_says_how(
    db: None, client: Client, header: str
) -> None:
    response = client.get("/api/v1/echo/", headers={"authorization": header})
    error_in(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"].startswith("Bearer resource_metadata=")


def test_a_token_acts_as_the_agent_it_is_named_after_within_its_scope(
    client: Client, alice: User
) -> None:
    _, secret = tokens.create(alice, "claude", "read")
    actor = client.get("/api/v1/echo/", headers=bearer(secret)).json()
    assert (actor["user"], actor["agent"], actor["scope"]) == ("alice", "claude", "read")
    assert uuid.UUID(actor["id"])


def test_a_session_reaches_as_far_as_the_role_and_needs_the_csrf_token(
    client: Client, alice: User
) -> None:
    client.force_login(alice)
    assert client.get("/api/v1/echo/").json()["scope"] == "write"
    assert client.get("/api/v1/echo/").json()["agent"] == ""
    error_in(
        client.post("/api/v1/echo/", {}, content_type="application/json"), 403, "permission_denied"
    )


def test_a_bad_body_is_refused_and_another_media_type_too(client: Client, alice: User) -> None:
    _, secret = tokens.create(alice, "claude", "write")
    post = client.post(
        "/api/v1/echo/", b'{"a": NaN}', content_type="application/json", headers=bearer(secret)
    )
    error_in(post, 400, "validation_failed")
    form = client.post("/api/v1/echo/", {"a": "b"}, headers=bearer(secret))
    assert "application/json" in error_in(form, 415, "validation_failed")["suggestion"]
