"""Resolve a bearer secret to an API token or an OAuth access token.

REST, MCP and streams all use this module.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone
from oauth2_provider.models import AccessToken

from resources_app.identity import tokens
from resources_app.identity.roles import Actor, Scope
from resources_app.models import ApiToken

SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
# The prefix identifies a leaked secret to people and to secret scanners.
ACCESS_TOKEN_PREFIX = "bo_"  # noqa: S105
_ACCESS_TOKEN = re.compile(r"bo_[A-Za-z0-9_-]{40,100}")

Kind = Literal["token", "oauth", "session"]


@dataclass(frozen=True)
class Credential:
    """Hold an authenticated user, the scope, and the grant: a named API token, an OAuth client or a
    session.
    """

    kind: Kind
    id: int
    user: User
    scope: Scope
    name: str
    # An OAuth token can be used at /mcp only if its audience names /mcp (RFC 8707).
    is_for_mcp: bool = True

    @property
    def key(self) -> tuple[Kind, int]:
        return self.kind, self.id

    @property
    def client(self) -> str:
        """Return the client for the audit trail.

        It includes the id because names are chosen by users and clients.
        """
        return f"{self.kind}:{self.id} {self.name}"

    def actor(self, via: str, *, agent: str = "", request_id: str = "", address: str = "") -> Actor:
        agent = agent or self.name
        return Actor(
            self.user, via, agent, request_id, self.scope, client=self.client, address=address
        )


def recognise(secret: str) -> Credential | None:
    """Return the credential for a secret.

    Return None if the secret is unknown, revoked, expired or issued for another server, or its user
    is inactive.
    """
    if _ACCESS_TOKEN.fullmatch(secret):
        digest = hashlib.sha256(secret.encode()).hexdigest()
        found = _granted().filter(token_checksum=digest).first()
        return _of_grant(found) if found else None
    token = tokens.authenticate(secret)
    return _of_token(token) if token else None


def still_standing(credentials: Iterable[Credential]) -> set[tuple[Kind, int]]:
    """Return the keys of the credentials that are still valid.

    Used by streams, which stay open after authentication.
    """
    ids: dict[Kind, list[int]] = {"token": [], "oauth": [], "session": []}
    for kind, number in {credential.key for credential in credentials}:
        ids[kind].append(number)
    standing: set[tuple[Kind, int]] = set()
    if ids["token"]:
        standing |= {
            ("token", pk)
            for pk in tokens.usable().filter(pk__in=ids["token"]).values_list("pk", flat=True)
        }
    if ids["oauth"]:
        standing |= {
            ("oauth", grant.pk)
            for grant in _granted().filter(pk__in=ids["oauth"])
            if _of_grant(grant)
        }
    if ids["session"]:
        # A session is identified by its user. The stream that holds the session key checks whether
        # it was signed out.
        active = User.objects.filter(pk__in=ids["session"], is_active=True)
        standing |= {("session", pk) for pk in active.values_list("pk", flat=True)}
    return standing


def widest(scopes: Iterable[str]) -> Scope | None:
    """Return the widest of the scopes; each scope includes the ones before it."""
    return next((scope for scope in reversed(SCOPES) if scope in set(scopes)), None)


def is_for_this_server(resource: str) -> bool:
    return resource.rstrip("/") in settings.OAUTH_RESOURCES


def is_for_mcp(resource: str) -> bool:
    return is_for_this_server(resource) and resource.rstrip("/").endswith("/mcp")


def bearer_secret(header: str) -> str:
    """Return the secret of a bearer Authorization header, or "" for any other scheme."""
    scheme, _, secret = header.strip().partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _of_token(token: ApiToken) -> Credential:
    return Credential("token", token.pk, token.user, cast(Scope, token.scope), token.name)


def _granted() -> QuerySet[Any]:
    live = AccessToken.objects.filter(
        expires__gt=timezone.now(), user__is_active=True, application__isnull=False
    )
    found: QuerySet[Any] = live.select_related("user", "application")
    return found


def _of_grant(grant: AccessToken) -> Credential | None:
    """Return the credential of an OAuth grant, or None if the token was not issued for this server.

    A token for another server, or without an audience, is worth nothing here.
    """
    scope = widest(grant.scope.split())
    if scope is None or not any(map(is_for_this_server, grant.resource or ())):
        return None
    name = grant.application.name or grant.application.client_id
    return Credential(
        "oauth", grant.pk, grant.user, scope, name, is_for_mcp=any(map(is_for_mcp, grant.resource))
    )
