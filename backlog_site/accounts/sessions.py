"""List and end the browser sessions of a user."""

from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY, get_user
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils import timezone

# Sessions are not indexed by user; beyond this many the oldest are left out of the list.
MOST_LOOKED_AT = 2000


@dataclass(frozen=True)
class SignedIn:
    key: str
    device: str
    since: datetime | None
    until: datetime
    is_this: bool


def user_of_session(key: str) -> User | None:
    """Return the user signed in with this session, or None after sign-out, a password change or
    deactivation.
    """
    request = HttpRequest()
    request.session = _store(key)
    user = get_user(request)
    return user if isinstance(user, User) and user.is_active else None


def sessions_of(user: User, current: str) -> list[SignedIn]:
    found = []
    for session in _open_sessions():
        kept = session.get_decoded()
        if kept.get(SESSION_KEY) == str(user.pk):
            since = datetime.fromisoformat(kept["since"]) if "since" in kept else None
            key = session.session_key
            found.append(
                SignedIn(key, kept.get("device", ""), since, session.expire_date, key == current)
            )
    return sorted(found, key=lambda one: not one.is_this)


def end_others(user: User, current: str) -> int:
    others = [one.key for one in sessions_of(user, current) if not one.is_this]
    Session.objects.filter(session_key__in=others).delete()
    return len(others)


def _open_sessions() -> Any:
    return Session.objects.filter(expire_date__gt=timezone.now()).order_by("-expire_date")[
        :MOST_LOOKED_AT
    ]


def _store(key: str) -> Any:
    return import_module(settings.SESSION_ENGINE).SessionStore(key)
