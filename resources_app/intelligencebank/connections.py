"""Create connections, seal their secrets, build clients, and share one session among workers."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import redis
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from resources_app.errors import ValidationFailed
from resources_app.intelligencebank import metrics, vault
from resources_app.intelligencebank.client import IBClient, Session
from resources_app.intelligencebank.failures import AuthRequired, ForbiddenHost, Unreachable
from resources_app.intelligencebank.hosts import HostPolicy
from resources_app.intelligencebank.limiting import SharedPace, connection_to_redis
from resources_app.intelligencebank.retrying import Patience
from resources_app.intelligencebank.transport import Limits, Transport
from resources_app.models import IBConnection, IBLink

# A session is not used in its last minutes because a page may take that long.
SPARE = timedelta(minutes=2)
LOGIN_LOCK_SECONDS = 90
HURRIED = Limits(connect=3, read=8, total=10)
# A worker waiting for a slow server blocks other work. It retries in place for this long; then the
# run pauses.
PATIENT_SECONDS = 20.0


def create(
    client_id: str,
    name: str,
    platform_url: str,
    *,
    email: str,
    password: str,
    product_key: str = "",
    **options: Any,
) -> IBConnection:
    connection = IBConnection(client_id=client_id, name=name, platform_url=platform_url, **options)
    check(connection)
    if not email or not password:
        raise ValidationFailed(
            "The mirroring account needs an e-mail address and a password.", field="email"
        )
    connection.data_key = vault.new_key(client_id)
    connection.credentials = _sealed(connection, email, password, product_key)
    connection.save(force_insert=True)
    return connection


def change(connection: IBConnection, **facts: Any) -> None:
    """Change a connection, except for the client id, which is part of every key, and the
    secrets.
    """
    for name, value in facts.items():
        setattr(connection, name, value)
    check(connection)
    connection.save(update_fields=list(facts))


def check(connection: IBConnection) -> None:
    try:
        connection.full_clean(exclude=["data_key", "credentials", "session"])
    except ValidationError as error:
        field, [message, *_] = next(iter(error.message_dict.items()))
        raise ValidationFailed(message, field=field) from None
    try:
        host_policy(connection).check(connection.platform_url)
    except (ForbiddenHost, ValueError):
        raise ValidationFailed(
            "The platform must be https under intelligencebank.com, or one of the connection's own"
            " domains.",
            field="platform_url",
            value=connection.platform_url,
        ) from None


def change_credentials(
    connection: IBConnection, email: str, password: str, product_key: str = ""
) -> None:
    """Store new credentials and clear the auth_required state."""
    connection.credentials = _sealed(connection, email, password, product_key)
    connection.session = b""
    connection.state, connection.state_reason = IBConnection.State.OK, ""
    connection.save(update_fields=["credentials", "session", "state", "state_reason"])


def _sealed(connection: IBConnection, email: str, password: str, product_key: str) -> bytes:
    secret = {"email": email, "password": password, "product_key": product_key}
    return _seal(connection, "credentials", secret)


def _seal(connection: IBConnection, purpose: str, secret: dict[str, Any]) -> bytes:
    key = vault.unwrap(connection.client_id, connection.data_key)
    return vault.seal(key, connection.client_id, purpose, secret)


def _unseal(connection: IBConnection, purpose: str, sealed: vault.Stored) -> dict[str, Any]:
    key = vault.unwrap(connection.client_id, connection.data_key)
    return vault.unseal(key, connection.client_id, purpose, sealed)


def seal_session(connection: IBConnection, purpose: str, session: Session) -> bytes:
    return _seal(
        connection, purpose, asdict(session) | {"expires_at": session.expires_at.isoformat()}
    )


def open_session(connection: IBConnection, purpose: str, sealed: vault.Stored) -> Session:
    secret = _unseal(connection, purpose, sealed)
    return Session(**secret | {"expires_at": datetime.fromisoformat(secret["expires_at"])})


def seal_token(link: IBLink, token: str) -> bytes:
    return _seal(link.connection, f"pending {link.user_id}", {"token": token})


def open_token(link: IBLink) -> str:
    return str(_unseal(link.connection, f"pending {link.user_id}", link.pending)["token"])


def rotate_keys(connection: IBConnection) -> None:
    """Create a new tenant key, sealed under the current SECRET_KEY, and re-encrypt everything with
    it.
    """
    with transaction.atomic():
        connection = IBConnection.objects.select_for_update().get(pk=connection.pk)
        old, new = (
            vault.unwrap(connection.client_id, connection.data_key),
            os.urandom(vault.KEY_BYTES),
        )

        def again(purpose: str, sealed: vault.Stored) -> bytes:
            if not sealed:
                return b""
            opened = vault.unseal(old, connection.client_id, purpose, sealed)
            return vault.seal(new, connection.client_id, purpose, opened)

        for link in connection.links.select_for_update():
            link.session = again(f"session {link.user_id}", link.session)
            link.pending = again(f"pending {link.user_id}", link.pending)
            link.save(update_fields=["session", "pending"])
        connection.credentials = again("credentials", connection.credentials)
        connection.session = again("session", connection.session)
        connection.data_key = vault.wrap(connection.client_id, new)
        connection.save(update_fields=["credentials", "session", "data_key"])


def host_policy(connection: IBConnection) -> HostPolicy:
    domains = frozenset(str(domain).lower() for domain in connection.domains)
    return HostPolicy(domains, frozenset(settings.IB_LOCAL_ORIGINS))


def client_for(connection: IBConnection, *, hurried: bool = False) -> IBClient:
    """Return a client. `hurried` is for interactive requests: one attempt, a few seconds."""
    patience = Patience(attempts=1 if hurried else settings.IB_ATTEMPTS, seconds=PATIENT_SECONDS)
    transport = Transport(host_policy(connection), HURRIED if hurried else Limits())
    pace = SharedPace(connection, HURRIED.connect if hurried else math.inf)
    return IBClient(connection.platform_url, transport, pace=pace, patience=patience)


class ServiceSessions:
    """Share the mirroring account's session among all workers.

    One worker renews it when it expires.
    """

    def __init__(self, connection: IBConnection, client: IBClient) -> None:
        self.connection, self.client = connection, client
        self.logins = 0

    def current(self) -> Session:
        return self._stored() or self.renew(None)

    def renew(self, failed: Session | None) -> Session:
        with _login_lock(self.connection):
            stored = self._stored()
            if stored and (failed is None or stored.sid != failed.sid):
                return stored
            return self._log_in()

    def reopen(self) -> Session:
        """Log in again, to learn the account's current rights."""
        with _login_lock(self.connection):
            return self._log_in()

    def _stored(self) -> Session | None:
        self.connection.refresh_from_db(fields=["session", "state", "credentials", "data_key"])
        if not self.connection.session:
            return None
        session = open_session(self.connection, "session", self.connection.session)
        return session if session.expires_at > timezone.now() + SPARE else None

    def _log_in(self) -> Session:
        if self.connection.state == IBConnection.State.AUTH_REQUIRED:
            raise AuthRequired("The account was refused before; enter its password again.")
        secret = _unseal(self.connection, "credentials", self.connection.credentials)
        self.logins += 1
        try:
            session = self.client.login(secret["email"], secret["password"], secret["product_key"])
            self._refuse_other_tenant(session)
        except AuthRequired as failure:
            self._require_auth(str(failure))
            raise
        self.connection.session = seal_session(self.connection, "session", session)
        self.connection.save(update_fields=["session"])
        return session

    def _refuse_other_tenant(self, session: Session) -> None:
        if session.client_id != self.connection.client_id:
            raise AuthRequired("The account belongs to another client id than this connection.")

    def _require_auth(self, reason: str) -> None:
        """Require new credentials.

        There is no automatic retry: repeated wrong passwords may lock the account.
        """
        metrics.count(self.connection.client_id, "auth_failures")
        self.connection.state, self.connection.state_reason = (
            IBConnection.State.AUTH_REQUIRED,
            reason,
        )
        self.connection.save(update_fields=["state", "state_reason"])


@contextmanager
def _login_lock(connection: IBConnection) -> Iterator[None]:
    name = f"ib:{connection.client_id}:login"
    lock = connection_to_redis().lock(
        name, timeout=LOGIN_LOCK_SECONDS, blocking_timeout=LOGIN_LOCK_SECONDS
    )
    try:
        lock.acquire()
    except redis.RedisError:
        raise Unreachable("Logging in needs Redis, which does not answer.") from None
    try:
        yield
    finally:
        with suppress(redis.RedisError):
            lock.release()
