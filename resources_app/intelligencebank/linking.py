"""Link users' own accounts by signing in to IntelligenceBank.

Only the encrypted session is stored.
"""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.errors import NotFound, PermissionDenied, Unavailable
from resources_app.identity.roles import Person, may_read
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.client import Session
from resources_app.intelligencebank.failures import AuthRequired, IBFailure
from resources_app.jobs import queue
from resources_app.models import IBConnection, IBLink

RIGHTS_JOB = "ib_rights"


def connection_for(user: Person, client_id: str) -> IBConnection:
    connection = IBConnection.objects.visible_to(user).filter(client_id=client_id).first()
    if connection is None:
        raise NotFound(
            "There is no such IntelligenceBank connection (or it is not visible to you)."
        )
    return connection


def link_of(user: Person, connection: IBConnection) -> IBLink | None:
    return (
        IBLink.objects.select_related("connection")
        .filter(user_id=user.pk or 0, connection=connection)
        .first()
    )


def begin(user: Person, client_id: str) -> dict[str, Any]:
    """Start a sign-in and return the URL for the user.

    `check` then finds out whether it is finished.
    """
    connection = connection_for(user, client_id)
    if not isinstance(user, User) or not may_read(user):
        raise PermissionDenied("Only people with a role can link an account.")
    client = connections.client_for(connection, hurried=True)
    try:
        token, url = client.start_browser_login()
    except IBFailure as failure:
        raise Unavailable(str(failure)) from None
    finally:
        client.close()
    link, _ = IBLink.objects.get_or_create(user=user, connection=connection)
    link.pending = connections.seal_token(link, token)
    link.save(update_fields=["pending"])
    return status(user, client_id) | {"sign_in_url": url}


def check(user: Person, client_id: str) -> dict[str, Any]:
    """Check whether a pending sign-in is finished; if not, return its URL again."""
    link = link_of(user, connection_for(user, client_id))
    if link is None or not link.pending:
        return status(user, client_id)
    client = connections.client_for(link.connection, hurried=True)
    try:
        token = connections.open_token(link)
        session = client.poll_browser_login(token)
    except IBFailure as failure:
        raise Unavailable(str(failure)) from None
    finally:
        client.close()
    if session is None:
        return status(user, client_id) | {"sign_in_url": client.sign_in_url(token)}
    keep_session(link, session)
    return status(user, client_id)


def keep_session(link: IBLink, session: Session) -> None:
    """Store the user's session and start reading the user's rights with it."""
    if session.client_id != link.connection.client_id:
        raise PermissionDenied("You signed in to another IntelligenceBank than this connection's.")
    link.session = connections.seal_session(link.connection, f"session {link.user_id}", session)
    link.pending, link.error = b"", ""
    link.ib_user, link.person = session.user_uuid, session.person
    link.linked_at, link.expires_at, link.verified_at = timezone.now(), session.expires_at, None
    link.save()
    request_rights(link)


def request_rights(link: IBLink) -> None:
    queue.enqueue(RIGHTS_JOB, {"link": link.pk}, key=f"ib-rights:{link.pk}")


def session_of(link: IBLink) -> Session:
    if not link.session or link.expires_at is None or link.expires_at <= timezone.now():
        raise AuthRequired("The session in IntelligenceBank has ended; sign in again.")
    return connections.open_session(link.connection, f"session {link.user_id}", link.session)


def end_session(link: IBLink, reason: str) -> None:
    """End the session and expire every right that was read with it."""
    now = timezone.now()
    link.session, link.expires_at, link.error = b"", now, reason[:500]
    link.save(update_fields=["session", "expires_at", "error"])
    link.entitlements.filter(expires_at__gt=now).update(expires_at=now)


def are_rights_known(link: IBLink, now: datetime) -> bool:
    spell = timedelta(seconds=link.connection.rights_seconds)
    return link.verified_at is not None and link.verified_at > now - spell


def why_nothing_shows(user: Person, connection: IBConnection) -> str:
    """Explain why nothing is shown, or return "" while the user's rights are known."""
    link, now = link_of(user, connection), timezone.now()
    if link is None or link.expires_at is None or link.expires_at <= now:
        ended = link.error if link else ""
        return (
            ended or "Your IntelligenceBank account is not linked. Link it to see its folders here."
        )
    if are_rights_known(link, now):
        return ""
    if link.verified_at is None and not link.error:
        return "Your rights are being read. Look again in a moment."
    return (
        f"Your rights could not be read. {link.error} Until they are known nothing shows; it is"
        " tried again by itself."
    )


def unlink(user: Person, client_id: str) -> None:
    link = link_of(user, connection_for(user, client_id))
    if link is not None:
        link.delete()


def status(user: Person, client_id: str) -> dict[str, Any]:
    link = link_of(user, connection_for(user, client_id))
    is_linked = link is not None and bool(link.expires_at and link.expires_at > timezone.now())
    return {
        "client_id": client_id,
        "state": "linked" if is_linked else "pending" if link and link.pending else "not_linked",
        "person": link.person if link and is_linked else None,
        "expires_at": link.expires_at.isoformat()
        if link and is_linked and link.expires_at
        else None,
        "rights_read_at": link.verified_at.isoformat() if link and link.verified_at else None,
        "error": link.error or None if link else None,
    }
