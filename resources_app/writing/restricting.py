"""Decide which actors may change the groups of an object, which hides it from all other users."""

from resources_app.errors import PermissionDenied
from resources_app.identity.roles import Actor, groups_of
from resources_app.models import Change, Task
from resources_app.models.backlog import Item
from resources_app.models.base import Versioned


def refuse_restricting(actor: Actor, thing: Versioned) -> None:
    """Raise PermissionDenied unless the actor is creator, assignee, admin, or in a group of the
    task's epic.
    """
    if not may_restrict(actor, thing):
        raise PermissionDenied(
            f"Only the creator or assignee of a {thing.KIND}, a member of its epic's groups, or an"
            " admin limits who sees it.",
            suggestion="Ask one of them, or an admin.",
            field="groups",
        )


def may_restrict(actor: Actor, thing: Versioned) -> bool:
    user = actor.user
    if actor.is_admin or (
        isinstance(thing, Item) and user.pk is not None and thing.assignee_id == user.pk
    ):
        return True
    if (
        isinstance(thing, Task)
        and thing.epic is not None
        and set(thing.epic.groups) & set(groups_of(user))
    ):
        return True
    created = Change.objects.filter(kind=thing.KIND, object_id=thing.pk, version=1)
    return user.pk is not None and created.filter(author_id=user.pk).exists()
