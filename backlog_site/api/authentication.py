"""Authenticate callers by a bearer token in the Authorization header, or by the browser session
with CSRF enforced.
"""

from typing import Any

from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import build_bearer_security_scheme_object
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from backlog_site.serving.challenges import bearer_challenge
from resources_app.identity import credentials
from resources_app.identity.credentials import Credential

__all__ = ["SessionAuthentication", "TokenAuthentication"]


class TokenAuthentication(BaseAuthentication):
    """Authenticate `Authorization: Bearer …` with an API token or an OAuth access token.

    Its credential becomes `request.auth`.
    """

    def authenticate(self, request: Request) -> tuple[User, Credential] | None:
        scheme, _, secret = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.lower() != "bearer":
            return None
        credential = credentials.recognise(secret.strip())
        if credential is None:
            raise AuthenticationFailed("The token is unknown, expired or revoked.")
        return credential.user, credential

    def authenticate_header(self, request: Request) -> str:
        return bearer_challenge(request.get_host())


class _TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped metaclass hook
    """Let the served API documentation offer a field for the token."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return build_bearer_security_scheme_object("Authorization", "Bearer")
