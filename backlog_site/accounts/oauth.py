"""What we ask of OAuth beyond django-oauth-toolkit: tokens bound to this server, safe redirects, a real grace period."""

import secrets
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error

from resources_app.credentials import ACCESS_TOKEN_PREFIX, is_for_this_server

REFRESH_TOKEN_PREFIX = "br_"  # noqa: S105
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def new_access_token(_request: Any) -> str:
    return ACCESS_TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_refresh_token(_request: Any) -> str:
    return REFRESH_TOKEN_PREFIX + secrets.token_urlsafe(32)


def is_safe_redirect(uri: str) -> bool:
    """Plain http is for programs on the user's own machine alone: anywhere else the code could be read on its way."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.scheme != "http" or parts.hostname in LOOPBACK


def wrong_target(resource: str, state: str | None = None) -> CustomOAuth2Error:
    return CustomOAuth2Error(
        error="invalid_target", description=f"Tokens are issued for {settings.OAUTH_RESOURCES[0]} alone.", state=state
    )


class BoundTokens(OAuth2Validator):  # type: ignore[misc]  # the package has no types
    def validate_redirect_uri(self, client_id: str, redirect_uri: str, request: Any, *args: Any, **kwargs: Any) -> bool:
        allowed = super().validate_redirect_uri(client_id, redirect_uri, request, *args, **kwargs)
        return bool(allowed) and is_safe_redirect(redirect_uri)

    def _validate_resource_uris(self, request: Any, resources: list[str]) -> None:
        for resource in resources:
            if not is_for_this_server(resource):
                raise wrong_target(resource)

    def _check_and_set_request_resource(self, request: Any) -> None:
        """A client that names no resource gets a token for this server too, never one for any."""
        super()._check_and_set_request_resource(request)
        request.resource = request.resource or [settings.OAUTH_RESOURCES[0]]

    def _save_bearer_token(self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any) -> None:
        """In the grace period the package hands out the tokens it issued before; of ours it knows the hashes alone.

        The client that lost an answer, or refreshed twice at once, gets another pair of the same family instead.
        """
        used, fresh = getattr(request, "refresh_token_instance", None), dict(token)
        super()._save_bearer_token(token, request, *args, **kwargs)
        if not token["access_token"]:
            token.update(fresh)
            expires = timezone.now() + timedelta(seconds=token["expires_in"])
            access = self._create_access_token(expires, request, token)
            self._create_refresh_token(request, token["refresh_token"], access, used)
