"""Roles and actors: who somebody is in the backlog, and in whose name a write happens."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import IntegerField, QuerySet
from django.utils import timezone

from resources_app.database.prepared import Given, prepared

Role = Literal["viewer", "contributor", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "contributor", "admin")
Scope = Literal["read", "write", "admin"]

Person = User | AnonymousUser
# In the audit trail, for whoever acts in a browser.
SESSION_CLIENT = "session"


def groups_of(user: Person) -> dict[str, int]:
    """Ids by name. Asked several times per request, fetched once per user object."""
    groups: dict[str, int] | None = getattr(user, "_backlog_groups", None)
    if groups is None:
        groups = dict(prepared("groups", _groups).run(user=user.pk)) if user.is_active and user.pk else {}
        user._backlog_groups = groups  # type: ignore[union-attr]  # cached on the object on purpose
    return groups


def _groups() -> QuerySet[Group, tuple[str, int]]:
    return Group.objects.filter(user=Given("user", IntegerField())).values_list("name", "pk")


def sight_of(user: Person) -> Hashable:
    """All that decides which tasks, epics and files somebody sees: who has the same sees the same."""
    return is_admin(user), frozenset(groups_of(user).values())


def is_admin(user: Person) -> bool:
    return user.is_active and (user.is_superuser or "admin" in groups_of(user))


def may_write(user: Person) -> bool:
    return is_admin(user) or "contributor" in groups_of(user)


def may_read(user: Person) -> bool:
    return may_write(user) or "viewer" in groups_of(user)


@dataclass(frozen=True)
class Actor:
    """Who writes, through which door, with which agent, and how far the credentials reach."""

    user: Person
    via: str
    agent: str = ""
    request_id: str = ""
    scope: Scope = "admin"
    # When it happened, if not now: imports and the demo tell of the past.
    at: datetime | None = None
    # For the audit trail: which token or OAuth client, and from which network address.
    client: str = ""
    address: str = ""

    @property
    def moment(self) -> datetime:
        return self.at or timezone.now()

    @property
    def may_write(self) -> bool:
        return self.scope != "read" and may_write(self.user)

    @property
    def is_admin(self) -> bool:
        return self.scope == "admin" and is_admin(self.user)

    def may_reword(self, author_id: int | None) -> bool:
        """What somebody said under their name is theirs; an admin may correct it."""
        return self.is_admin or (self.may_write and author_id is not None and author_id == self.user.pk)


class _System(AnonymousUser):
    """Scans and conversions see and write everything, and are nobody's account: their changes have no author."""

    is_active = True  # type: ignore[assignment]  # the stubs know only the anonymous visitor
    is_superuser = True  # type: ignore[assignment]


def system_actor(via: str) -> Actor:
    return Actor(_System(), via)
