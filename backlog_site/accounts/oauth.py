"""Extend django-oauth-toolkit with tokens bound to this server, safe redirects and a real grace
period.
"""

import hashlib
import secrets
import uuid
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import timezone
from oauth2_provider import cimd
from oauth2_provider.models import RefreshToken
from oauth2_provider.oauth2_validators import OAuth2Validator
from oauthlib.oauth2.rfc6749.errors import CustomOAuth2Error, InvalidGrantError

from resources_app.identity.credentials import ACCESS_TOKEN_PREFIX, is_for_this_server
from resources_app.safety.public_addresses import is_public

REFRESH_TOKEN_PREFIX = "br_"  # noqa: S105
LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def new_access_token(_request: Any) -> str:
    return ACCESS_TOKEN_PREFIX + secrets.token_urlsafe(32)


def new_refresh_token(_request: Any) -> str:
    return REFRESH_TOKEN_PREFIX + secrets.token_urlsafe(32)


def is_safe_redirect(uri: str) -> bool:
    """Allow plain http only for loopback addresses. Anywhere else the code could be intercepted."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.scheme != "http" or parts.hostname in LOOPBACK


def wrong_target(resource: str, state: str | None = None) -> CustomOAuth2Error:
    return CustomOAuth2Error(
        error="invalid_target",
        description=f"Tokens are issued for {settings.OAUTH_RESOURCES[0]} alone.",
        state=state,
    )


# The package has no setting for this, and treats multicast and site-local addresses as public.
cimd._ip_is_public = is_public


class PublicDocuments(cimd.SafeMetadataFetcher):  # type: ignore[misc]  # the package has no types
    """Fetch client documents from public addresses only.

    The settings name this class, so this module is always loaded.
    """


def family_of(code: str, client: Any) -> uuid.UUID:
    """Return the token family of an authorization code.

    A used code is deleted, so its tokens must be found without it.
    """
    return uuid.UUID(bytes=hashlib.sha256(f"{client.pk} {code}".encode()).digest()[:16])


class BoundTokens(OAuth2Validator):  # type: ignore[misc]  # the package has no types
    def validate_redirect_uri(
        self, client_id: str, redirect_uri: str, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        allowed = super().validate_redirect_uri(client_id, redirect_uri, request, *args, **kwargs)
        return bool(allowed) and is_safe_redirect(redirect_uri)

    def validate_code(
        self, client_id: str, code: str, client: Any, request: Any, *args: Any, **kwargs: Any
    ) -> bool:
        """Revoke the token family when a code is reused, because it may be stolen (OAuth 2.1,
        section 4.1.3).
        """
        is_valid = bool(super().validate_code(client_id, code, client, request, *args, **kwargs))
        if not is_valid:
            RefreshToken.revoke_family(family_of(code, client))
        return is_valid

    def invalidate_authorization_code(
        self, client_id: str, code: str, request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Delete the code.

        If two requests race on one code, the second finds it gone and revokes both token sets.
        """
        try:
            super().invalidate_authorization_code(client_id, code, request, *args, **kwargs)
        except InvalidGrantError:
            RefreshToken.revoke_family(family_of(code, request.client))
            raise

    def _create_refresh_token(
        self, request: Any, secret: str, access_token: Any, previous: Any
    ) -> Any:
        """Start a family from the code.

        The package copies it from the previous token, which the first token does not have.
        """
        if previous is None and request.grant_type == "authorization_code":
            previous = SimpleNamespace(token_family=family_of(request.code, request.client))
        return super()._create_refresh_token(request, secret, access_token, previous)

    def _validate_resource_uris(self, request: Any, resources: list[str]) -> None:
        for resource in resources:
            if not is_for_this_server(resource):
                raise wrong_target(resource)

    def _check_and_set_request_resource(self, request: Any) -> None:
        """Bind a token to this server when the client names no resource.

        A token is never valid for any resource.
        """
        super()._check_and_set_request_resource(request)
        request.resource = request.resource or [settings.OAUTH_RESOURCES[0]]

    def _save_bearer_token(
        self, token: dict[str, Any], request: Any, *args: Any, **kwargs: Any
    ) -> None:
        """Issue a new pair of the same family during the grace period.

        The package would return the tokens it issued before, but we store only their hashes. A
        client needs the new pair when it lost a response or refreshed twice at once.
        """
        used, fresh = getattr(request, "refresh_token_instance", None), dict(token)
        super()._save_bearer_token(token, request, *args, **kwargs)
        if not token["access_token"]:
            token.update(fresh)
            expires = timezone.now() + timedelta(seconds=token["expires_in"])
            access = self._create_access_token(expires, request, token)
            self._create_refresh_token(request, token["refresh_token"], access, used)
