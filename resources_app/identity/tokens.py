"""Create, authenticate and revoke API tokens.

A token is shown once; the database stores only its SHA-256.
"""

import hashlib
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, cast

import structlog
from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import CharField, DateTimeField, Q, QuerySet
from django.utils import timezone

from resources_app.database.prepared import Param, prepared
from resources_app.errors import NotFound, PermissionDenied, ValidationFailed
from resources_app.fields.declarations import clean_text
from resources_app.identity.roles import Person, Scope, is_admin, may_read, may_write
from resources_app.models import ApiToken

MAX_NAME = 100
MAX_DAYS = 3650
NOTED_EVERY = timedelta(minutes=1)
_SHAPE = re.compile(r"bl_[A-Za-z0-9_-]{40,100}")
_REACH = {
    ApiToken.Scope.READ: may_read,
    ApiToken.Scope.WRITE: may_write,
    ApiToken.Scope.ADMIN: is_admin,
}
_BUSY_MILLISECONDS = 50

logger = structlog.get_logger("backlog.tokens")


def create(
    user: User, name: str, scope: str, expires_in_days: int | None = None
) -> tuple[ApiToken, str]:
    name = _clean_name(name)
    _refuse_beyond_role(user, scope)
    secret = f"bl_{secrets.token_urlsafe(32)}"
    try:
        with transaction.atomic():
            token = ApiToken.objects.create(
                user=user,
                name=name,
                scope=scope,
                digest=_digest(secret),
                expires_at=_expiry(expires_in_days),
            )
    except IntegrityError:
        raise ValidationFailed(
            f"{user.username} already has a token named {name!r}.",
            suggestion="Choose another name, or revoke that token first.",
            field="name",
            value=name,
        ) from None
    return token, secret


def authenticate(token: str) -> ApiToken | None:
    """Return the token for a secret, with its user.

    Return None if the token is unknown, revoked or expired, or its user is inactive.
    """
    if not _SHAPE.fullmatch(token):
        return None
    found = prepared("token", _by_digest).run(digest=_digest(token), now=timezone.now())
    if not found:
        return None
    _note_use(found[0], timezone.now())
    return found[0]


def _by_digest() -> QuerySet[ApiToken]:
    now = Param("now", DateTimeField())
    return usable(now).select_related("user").filter(digest=Param("digest", CharField()))


def usable(now: datetime | Param | None = None) -> QuerySet[ApiToken]:
    """Return the tokens of active users that are neither revoked nor expired."""
    in_time = Q(expires_at__isnull=True) | Q(expires_at__gt=now or timezone.now())
    return ApiToken.objects.filter(in_time, revoked_at__isnull=True, user__is_active=True)


def first_admin() -> User | None:
    """Return the first active admin, used by commands that are run without a token."""
    return next(
        (user for user in User.objects.filter(is_active=True).order_by("pk") if is_admin(user)),
        None,
    )


@contextmanager
def lent(user: User, name: str, scope: Scope) -> Iterator[str]:
    """Yield the secret of a temporary token and revoke it when the block ends."""
    token, secret = create(user, f"{name} {secrets.token_hex(4)}", scope, expires_in_days=1)
    try:
        yield secret
    finally:
        revoke(token)


def revoke(token: ApiToken) -> None:
    now = timezone.now()
    if ApiToken.objects.filter(pk=token.pk, revoked_at__isnull=True).update(revoked_at=now):
        token.revoked_at = now


def scopes_within_role(user: Person) -> list[Scope]:
    return [cast(Scope, scope.value) for scope, allowed in _REACH.items() if allowed(user)]


def tokens_of(user: User) -> list[ApiToken]:
    """Return the user's usable tokens, newest first."""
    return list(usable().filter(user=user).order_by("-created_at", "-pk"))


def revoke_own(user: User, number: int) -> ApiToken:
    token = ApiToken.objects.filter(user=user, pk=number).first()
    if token is None:
        raise NotFound("You have no such token.")
    revoke(token)
    return token


def _clean_name(name: Any) -> str:
    cleaned = clean_text("name", name, MAX_NAME).strip()
    if not cleaned or not cleaned.isprintable():
        raise ValidationFailed(
            f"name must be one line of 1 to {MAX_NAME} characters.", field="name", value=name
        )
    return cleaned


def _refuse_beyond_role(user: User, scope: str) -> None:
    """Reject a scope that exceeds the role of the user."""
    if scope not in _REACH:
        raise ValidationFailed(
            "Invalid scope value", field="scope", value=scope, allowed_values=ApiToken.Scope.values
        )
    # The read scope is always allowed: a user who can read nothing reads nothing with a token
    # either.
    if scope != ApiToken.Scope.READ and not _REACH[ApiToken.Scope(scope)](user):
        within = scopes_within_role(user) or ["read"]
        raise PermissionDenied(
            f"The role of {user.username} does not reach to the scope {scope!r}.",
            suggestion=f"Use the scope {' or '.join(within)}.",
            field="scope",
            allowed_values=within,
        )


def _expiry(days: int | None) -> datetime | None:
    if days is None:
        return None
    if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MAX_DAYS:
        raise ValidationFailed(
            f"expires_in_days must be a whole number of days from 1 to {MAX_DAYS}.",
            field="expires_in_days",
            value=days,
        )
    return timezone.now() + timedelta(days=days)


def _digest(secret: str) -> str:
    # A plain hash is enough: the secret is random, so salting or a slow hash would add no
    # protection against guessing.
    return hashlib.sha256(secret.encode()).hexdigest()


def _note_use(token: ApiToken, now: datetime) -> None:
    noted_before = now - NOTED_EVERY
    if token.last_used_at and token.last_used_at > noted_before:
        return
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lte=noted_before)
    try:
        with _without_waiting_for_writers():
            ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
        token.last_used_at = now
    except OperationalError as error:
        logger.warning("token_use_not_noted", token_id=token.pk, reason=str(error))


@contextmanager
def _without_waiting_for_writers() -> Iterator[None]:
    """Shorten SQLite's busy timeout for the block.

    SQLite has one writer at a time, and recording a token's use should not make a read wait for a
    long write.
    """
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    sqlite = connection.connection
    (patience,) = sqlite.execute("PRAGMA busy_timeout").fetchone()
    sqlite.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
    try:
        yield
    finally:
        sqlite.execute(f"PRAGMA busy_timeout = {patience}")
