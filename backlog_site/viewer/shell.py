"""Provide what every page shares: access, the surrounding layout and error display."""

import json
from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.cache import patch_cache_control
from django.utils.http import urlencode

from backlog_site.api.actors import signed_in_actor
from backlog_site.api.errors import RETRY_AFTER_SECONDS
from backlog_site.viewer.queries import boards
from backlog_site.viewer.time_zones import zone_of
from resources_app.database.schema import refusal_of
from resources_app.errors import BacklogError, InvalidOperation, ValidationFailed
from resources_app.identity.roles import Actor, is_admin, may_read, may_write
from resources_app.reading import watching

View = Callable[..., HttpResponse]
THEMES = ("light", "dark")


def page(*methods: str) -> Callable[[View], View]:
    """Decorate a view for signed-in users with a role, in their time zone.

    Shows domain errors instead of raising them.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            with timezone.override(zone_of(request)):
                response = _answer(view, request, methods or ("GET", "HEAD"), *args, **kwargs)
            patch_cache_control(response, private=True, no_cache=True)
            response.headers.setdefault("Vary", "Cookie, HX-Request")
            return response

        return answer

    return decorate


def _answer(
    view: View, request: HttpRequest, methods: tuple[str, ...], *args: Any, **kwargs: Any
) -> HttpResponse:
    if not request.user.is_authenticated:
        return _to_login(request)
    try:
        if request.method not in methods:
            raise InvalidOperation(
                f"{request.method} is not for this address.", allowed=list(methods)
            )
        if not may_read(request.user):
            return show(request, "viewer/no_role.html", {}, status=403)
        _refuse_nul(request)
        return view(request, *args, **kwargs)
    except BacklogError as error:
        return refusal(request, error)
    except (DatabaseError, InterfaceError) as error:
        refused = refusal_of(error)
        if refused is None:
            raise
        return refusal(request, refused)


def _refuse_nul(request: HttpRequest) -> None:
    """Reject NUL, which PostgreSQL accepts in no text, not even in a search."""
    for name, values in (*request.GET.lists(), *request.POST.lists()):
        if any("\x00" in str(value) for value in values):
            raise ValidationFailed("No value can hold a NUL character.", field=name)


def _to_login(request: HttpRequest) -> HttpResponse:
    """Redirect to the login page. A fragment cannot show it, so the whole browser navigates."""
    target = f"{settings.LOGIN_URL}?{urlencode({'next': request.get_full_path()})}"
    if is_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": settings.LOGIN_URL})
    return redirect(target)


def is_fragment(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"


def wants_json(request: HttpRequest) -> bool:
    return "application/json" in request.headers.get("Accept", "")


def theme_of(request: HttpRequest) -> str:
    """Return the theme chosen here, or "" for the system's."""
    theme = request.COOKIES.get("theme", "")
    return theme if theme in THEMES else ""


def actor_of(request: HttpRequest) -> Actor:
    return signed_in_actor(request, "web")


def person_of(request: HttpRequest) -> User:
    """Return the user of a view behind `page`, which admits no anonymous users."""
    return cast(User, request.user)


def show(
    request: HttpRequest, template: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """Render a fragment as the template alone, or a page with the layout around it."""
    around = {} if is_fragment(request) else _around(request)
    return render(
        request,
        template,
        {**around, **context, "may_write": may_write(request.user)},
        status=status,
    )


def refusal(request: HttpRequest, error: BacklogError) -> HttpResponse:
    if wants_json(request):
        return JsonResponse({"error": error.as_json()}, status=error.status)
    template = "viewer/_refusal.html" if is_fragment(request) else "viewer/refusal.html"
    response = show(request, template, {"error": error}, status=error.status)
    if error.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if is_fragment(request) and request.method == "POST":
        # The current content stays; the browser shows why nothing happened.
        told = {"message": error.message, "suggestion": error.suggestion}
        response["HX-Reswap"], response["HX-Trigger"] = "none", json.dumps({"refused": told})
    return response


def whole_number(text: str) -> int | None:
    """Parse a number from a form or a URL if a database can store it.

    `isdigit` accepts more digits than `int`.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def pairs_of(query: QueryDict, *known: str) -> list[tuple[str, str]]:
    """Return the filter parameters in the collection language. An empty field filters nothing."""
    pairs = [
        (name, value)
        for name, values in query.lists()
        for value in values
        if name in known and value
    ]
    return [
        (name, "" if value == "none" and name in {"assignee", "epic_id"} else value)
        for name, value in pairs
    ]


def _around(request: HttpRequest) -> dict[str, Any]:
    return {
        "theme": theme_of(request),
        "open_count": boards.open_count(request.user) if request.user.is_authenticated else 0,
        "is_admin": is_admin(request.user),
        "time_zone": timezone.get_current_timezone_name(),
        # The end of the change feed before the page was rendered; the stream delivers later
        # changes.
        "position": watching.end_of_feed(),
    }
