"""Manage OAuth clients and their grants: list, revoke, delete, prune and describe."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone
from oauth2_provider.models import (
    AccessToken,
    Application,
    RefreshToken,
    clear_expired,
    revoke_access_token,
)

from resources_app.identity.credentials import widest

# Client registration is open. A client that no user has authorized for this long is deleted.
UNUSED_KEPT = timedelta(days=30)


def revoke(token: AccessToken) -> None:
    """Revoke an access token and its refresh token."""
    revoke_access_token(token)


@dataclass(frozen=True)
class Grant:
    """Describe a client that a user has authorized and that can still act or refresh."""

    client_id: int
    name: str
    scope: str
    since: datetime


def grants_of(user: User) -> list[Grant]:
    """Return one grant per client, newest first."""
    can_refresh = RefreshToken.objects.filter(user=user, revoked__isnull=True).values(
        "access_token_id"
    )
    live = AccessToken.objects.filter(
        Q(expires__gt=timezone.now()) | Q(pk__in=can_refresh), user=user
    )
    found: dict[int, Grant] = {}
    for token in (
        live.filter(application__isnull=False).select_related("application").order_by("-pk")
    ):
        name, scope = (
            token.application.name or token.application.client_id,
            widest(token.scope.split()),
        )
        found.setdefault(
            token.application_id, Grant(token.application_id, name, scope or "", token.created)
        )
    return list(found.values())


def end_own(user: User, client_id: int) -> None:
    """Revoke everything the user has granted to the client."""
    for refresh in RefreshToken.objects.filter(
        user=user, application_id=client_id, revoked__isnull=True
    ):
        refresh.revoke()
    AccessToken.objects.filter(user=user, application_id=client_id).delete()


def forget(client: Application) -> None:
    """Delete a client together with all its grants."""
    client.delete()


def unused_clients() -> QuerySet[Any]:
    """Return old self-registered clients that no user has authorized.

    Clients created by an admin are kept.
    """
    old = Application.objects.filter(created__lt=timezone.now() - UNUSED_KEPT)
    by_themselves = old.exclude(registration_source=Application.RegistrationSource.MANUAL)
    unused: QuerySet[Any] = by_themselves.exclude(accesstoken__user__isnull=False).exclude(
        refreshtoken__isnull=False
    )
    return unused


def forget_expired() -> None:
    clear_expired()


def configuration() -> dict[str, Any]:
    """Return the OAuth configuration for admins. It contains no secrets."""
    options = settings.OAUTH2_PROVIDER
    return {
        "issuer": settings.PUBLIC_URL,
        "resource": settings.OAUTH_RESOURCES[0],
        "scopes": options["SCOPES"],
        "registration": options["DCR_ENABLED"],
        "client_documents": options["CIMD_ENABLED"],
        "redirect_schemes": options["ALLOWED_REDIRECT_URI_SCHEMES"],
        "access_token_seconds": options["ACCESS_TOKEN_EXPIRE_SECONDS"],
        "refresh_token_seconds": options["REFRESH_TOKEN_EXPIRE_SECONDS"],
        "refresh_grace_seconds": options["REFRESH_TOKEN_GRACE_PERIOD_SECONDS"],
        "clients": Application.objects.count(),
        "live_access_tokens": AccessToken.objects.filter(
            expires__gt=timezone.now(), user__isnull=False
        ).count(),
    }
