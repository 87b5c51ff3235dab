"""Present the users of the backlog by name."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Q

from resources_app.identity.roles import ROLES

MOST = 200


@dataclass(frozen=True)
class Member:
    username: str
    name: str

    @property
    def initials(self) -> str:
        parts = self.name.replace("_", " ").replace("-", " ").replace(".", " ").split()
        return (
            "".join(part[0] for part in parts[:2]).upper()
            if len(parts) > 1
            else self.name[:2].upper()
        )


def member_of(user: User) -> Member:
    return Member(user.get_username(), user.get_full_name() or user.get_username())


def team() -> list[Member]:
    """Return the users who can be assigned tasks: active, with a role."""
    rows = User.objects.filter(Q(groups__name__in=ROLES) | Q(is_superuser=True), is_active=True)
    return [member_of(user) for user in rows.distinct().order_by("username")[:MOST]]
