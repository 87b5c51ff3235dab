"""Define roles, and actors in whose name a write happens."""

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import IntegerField, QuerySet
from django.utils import timezone

from resources_app.database.prepared import Param, prepared

Role = Literal["viewer", "contributor", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "contributor", "admin")
Scope = Literal["read", "write", "admin"]

Person = User | AnonymousUser
# Client name in the audit trail for browser sessions.
SESSION_CLIENT = "session"


def groups_of(user: Person) -> dict[str, int]:
    """Return the user's groups as ids by name. They are fetched once per user object."""
    groups: dict[str, int] | None = getattr(user, "_backlog_groups", None)
    if groups is None:
        groups = (
            dict(prepared("groups", _groups).run(user=user.pk))
            if user.is_active and user.pk
            else {}
        )
        user._backlog_groups = groups  # type: ignore[union-attr]  # cached on the object on purpose
    return groups


def _groups() -> QuerySet[Group, tuple[str, int]]:
    return Group.objects.filter(user=Param("user", IntegerField())).values_list("name", "pk")


def visibility_key(user: Person) -> Hashable:
    """Return the visibility key of a user.

    Users with equal keys see the same tasks, epics and files.
    """
    return is_admin(user), frozenset(groups_of(user).values())


def is_admin(user: Person) -> bool:
    return user.is_active and (user.is_superuser or "admin" in groups_of(user))


def may_write(user: Person) -> bool:
    return is_admin(user) or "contributor" in groups_of(user)


def may_read(user: Person) -> bool:
    return may_write(user) or "viewer" in groups_of(user)


@dataclass(frozen=True)
class Actor:
    """Identify the user behind a write, the channel, the agent and the scope of the credential."""

    user: Person
    via: str
    agent: str = ""
    request_id: str = ""
    scope: Scope = "admin"
    # Time of the write if it is not now: imports and the demo write past events.
    at: datetime | None = None
    # API token or OAuth client and network address, for the audit trail.
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
        """Return whether the actor may edit text by this author. Only the author and admins may."""
        return self.is_admin or (
            self.may_write and author_id is not None and author_id == self.user.pk
        )


class _System(AnonymousUser):
    """Stand for scans and conversions, which see and write everything.

    Their changes have no author.
    """

    is_active = True  # type: ignore[assignment]  # the stubs cover only the anonymous visitor
    is_superuser = True  # type: ignore[assignment]


def system_actor(via: str) -> Actor:
    return Actor(_System(), via)
