"""Create accounts for unattended agents.

They have a role, tokens and a responsible owner, but no password.
"""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import Group, User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import clean_text
from resources_app.identity.roles import ROLES
from resources_app.models import ServiceAccount

MAX_PURPOSE = 200
MAX_USERNAME = 150


def create(username: str, role: str, owner: User, purpose: str) -> ServiceAccount:
    username, purpose = (
        _clean_username(username),
        clean_text("purpose", purpose, MAX_PURPOSE).strip(),
    )
    if role not in ROLES:
        raise ValidationFailed(
            "Invalid role value", field="role", value=role, allowed_values=list(ROLES)
        )
    if not purpose:
        raise ValidationFailed("Say what the account is for.", field="purpose", value=purpose)
    with transaction.atomic():
        user = User(username=username)
        user.set_unusable_password()
        user.save()
        user.groups.add(Group.objects.get(name=role))
        return ServiceAccount.objects.create(user=user, owner=owner, purpose=purpose)


def _clean_username(name: str) -> str:
    name = clean_text("username", name, MAX_USERNAME).strip()
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        raise ValidationFailed(
            "A username has letters, digits and @ . + - _ only.", field="username", value=name
        ) from None
    if User.objects.filter(username=name).exists():
        raise ValidationFailed(f"There is a user {name} already.", field="username", value=name)
    return name


class PeopleBackend(ModelBackend):
    """Reject password sign-in for service accounts, even if a password was set."""

    def authenticate(
        self, request: HttpRequest | None, *args: Any, **credentials: Any
    ) -> User | None:
        user = super().authenticate(request, *args, **credentials)
        return None if user is not None and hasattr(user, "service_account") else user
