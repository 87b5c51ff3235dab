"""Define every kind of caller, as headers or cookies of a request and as the domain's actor."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, set_token_value

from resources_app.identity import tokens
from resources_app.identity.credentials import recognise
from resources_app.identity.roles import Actor
from resources_app.models import ApiToken
from tests.accounts.flow import RESOURCE
from tests.factories import make_user

# Callers that cannot be recognised, regardless of their past.
STRANGERS = (
    "anonymous",
    "nonsense_token",
    "revoked_token",
    "expired_token",
    "inactive_user",
    "oauth_elsewhere",
    "oauth_expired",
)
# In order of reach: nothing, reading, writing, administering.
NOBODY = ("no_role_session", "no_role_oauth")
READERS = (
    "viewer_session",
    "viewer_token",
    "viewer_oauth_write",
    "contributor_read_token",
    "admin_read_token",
)
WRITERS = (
    "contributor_session",
    "contributor_token",
    "contributor_oauth",
    "service_account",
    "admin_write_token",
)
ADMINS = ("admin_session", "admin_token", "admin_oauth")
# One of each kind, for expensive checks that do not depend on the caller.
SOME = ("anonymous", "revoked_token", "no_role_session", "contributor_token", "admin_session")
EVERYBODY = (*STRANGERS, *NOBODY, *READERS, *WRITERS, *ADMINS)


@dataclass
class Caller:
    name: str
    user: User | None = None
    secret: str | None = None

    @cached_property
    def client(self) -> Client:
        client = Client(raise_request_exception=False)
        if self.user and not self.secret:
            client.force_login(self.user)
        return client

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"} if self.secret else {}

    @property
    def actor(self) -> Actor | None:
        """Return the actor as the adapters make it, or None if the caller is not recognised."""
        if self.secret:
            credential = recognise(self.secret)
            return credential.actor("mcp") if credential else None
        return Actor(self.user, "web", client="session") if self.user else None


def all_callers() -> dict[str, Caller]:
    people = {
        "no_role": make_user("mallory"),
        "viewer": make_user("bob", "viewer"),
        "contributor": make_user("alice", "contributor"),
        "admin": make_user("carol", "admin"),
        "inactive": make_user("gone", "admin"),
        "service": make_user("ci-bot", "contributor"),
    }
    make = {
        **{
            f"{role}_session": _session(people[role])
            for role in ("no_role", "viewer", "contributor", "admin")
        },
        "anonymous": lambda name: Caller(name),
        "nonsense_token": lambda name: Caller(name, secret="bl_" + "x" * 43),
        "revoked_token": _token(people["admin"], "admin", lambda token: tokens.revoke(token)),
        "expired_token": _token(people["admin"], "admin", _expire),
        "inactive_user": _token(people["inactive"], "admin", _deactivate),
        "viewer_token": _token(people["viewer"], "read"),
        "contributor_read_token": _token(people["contributor"], "read"),
        "contributor_token": _token(people["contributor"], "write"),
        "service_account": _token(people["service"], "write"),
        "admin_read_token": _token(people["admin"], "read"),
        "admin_write_token": _token(people["admin"], "write"),
        "admin_token": _token(people["admin"], "admin"),
        "no_role_oauth": _granted(people["no_role"], "read write admin"),
        "viewer_oauth_write": _granted(people["viewer"], "read write"),
        "contributor_oauth": _granted(people["contributor"], "read write"),
        "admin_oauth": _granted(people["admin"], "read write admin"),
        "oauth_elsewhere": _granted(
            people["admin"], "read write admin", resource="https://elsewhere.example/mcp"
        ),
        "oauth_expired": _granted(people["admin"], "read write admin", lasts=-1),
    }
    callers = {name: make[name](name) for name in EVERYBODY}
    for caller in callers.values():
        assert caller.client  # signs in now: later a rolled back request would drop the session
    return callers


def _session(user: User) -> Callable[[str], Caller]:
    return lambda name: Caller(name, user)


def _token(
    user: User, scope: str, then: Callable[[ApiToken], Any] | None = None
) -> Callable[[str], Caller]:
    def make(name: str) -> Caller:
        token, secret = tokens.create(user, name, scope)
        if then:
            then(token)
        return Caller(name, user, secret)

    return make


def _expire(token: ApiToken) -> None:
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())


def _deactivate(token: ApiToken) -> None:
    User.objects.filter(pk=token.user_id).update(is_active=False)


def _granted(
    user: User, scope: str, resource: str = RESOURCE, lasts: int = 3600
) -> Callable[[str], Caller]:
    return lambda name: Caller(name, user, grant(user, name, scope, [resource], lasts))


def grant(user: User, name: str, scope: str, resources: list[str], lasts: int = 3600) -> str:
    """Return an access token as if a client of that name had been authorized."""
    client = Application.objects.create(
        name=name, client_type="public", authorization_grant_type="authorization-code"
    )
    expires = timezone.now() + timedelta(seconds=lasts)
    token = AccessToken(
        user=user, application=client, scope=scope, resource=resources, expires=expires
    )
    secret = f"bo_{name}_".ljust(50, "x")
    set_token_value(token, secret)
    token.save()
    return secret
