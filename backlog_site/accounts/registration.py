"""Restrict dynamic client registration (RFC 7591, 7592) to what agents need: the code grant and a
safe redirect.
"""

import json
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from oauth2_provider.views import (
    DynamicClientRegistrationManagementView,
    DynamicClientRegistrationView,
)

from backlog_site.accounts.oauth import is_safe_redirect

MAX_BODY = 16 * 1024
MAX_REDIRECTS = 10
MAX_NAME = 100
GRANT_TYPES = ("authorization_code", "refresh_token")


class RegistrationView(DynamicClientRegistrationView):  # type: ignore[misc]  # the package has no types
    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _refusal(request.body) or super().post(request, *args, **kwargs)


class RegistrationManagementView(DynamicClientRegistrationManagementView):  # type: ignore[misc]
    """Apply the registration rules to updates too.

    Otherwise a client could bypass them by replacing its registration.
    """

    def put(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _refusal(request.body) or super().put(request, *args, **kwargs)


def _refusal(body: bytes) -> HttpResponse | None:
    problem = _problem_with(body)
    described = {"error": "invalid_client_metadata", "error_description": problem}
    return JsonResponse(described, status=400) if problem else None


def _problem_with(body: bytes) -> str | None:
    if len(body) > MAX_BODY:
        return f"The metadata is larger than {MAX_BODY} bytes."
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError):
        return "The body is not JSON."
    if not isinstance(metadata, dict):
        return "The body must be a JSON object."
    return _problem_with_metadata(metadata)


def _problem_with_metadata(metadata: dict[str, Any]) -> str | None:
    name, redirects = metadata.get("client_name", ""), metadata.get("redirect_uris", [])
    if not isinstance(name, str) or len(name) > MAX_NAME or not name.isprintable():
        return f"client_name must be one line of at most {MAX_NAME} characters."
    if not isinstance(redirects, list) or not 1 <= len(redirects) <= MAX_REDIRECTS:
        return f"redirect_uris must be a list of 1 to {MAX_REDIRECTS} addresses."
    if not all(
        isinstance(uri, str) and _is_one_word(uri) and is_safe_redirect(uri) for uri in redirects
    ):
        return (
            "Each redirect URI must be https, a loopback http address, or the scheme of an"
            " installed program."
        )
    grants = metadata.get("grant_types", ["authorization_code"])
    if not isinstance(grants, list) or any(grant not in GRANT_TYPES for grant in grants):
        return f"The grant types are {' and '.join(GRANT_TYPES)}."
    return None


def _is_one_word(uri: str) -> bool:
    """Return whether the URI has no blanks.

    Redirect URIs are stored separated by blanks, so a blank would split one in two.
    """
    return uri.isprintable() and " " not in uri
