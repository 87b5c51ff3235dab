"""Convert objects to the public documents that are read, written and kept in history, and back to
columns.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.auth.models import Group, User

from resources_app.addresses import uris
from resources_app.addresses.hidden_refs import NAMING_FIELDS
from resources_app.addresses.intelligencebank import uri_of_mirrored
from resources_app.errors import PermissionDenied, ValidationFailed
from resources_app.fields.cleaning import whole
from resources_app.fields.declarations import (
    FIELDS,
    Field,
    Type,
    field_of,
    parse_ref,
    writable_names,
)
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor, groups_of
from resources_app.models import Comment, Epic, IBFolder, IBResource, Resource, Task
from resources_app.models.backlog import Item
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind

MODELS: dict[str, type[Task] | type[Epic] | type[Comment] | type[Resource]] = {
    Kind.TASK: Task,
    Kind.EPIC: Epic,
    Kind.COMMENT: Comment,
    Kind.RESOURCE: Resource,
}
_COLLECTIONS = {Kind.TASK: "tasks", Kind.EPIC: "epics"}


def document_of(thing: Versioned) -> Document:
    """Return every field that can change, including `archived_at`: exactly the fields a revision
    must restore.
    """
    document = part_of(thing, writable_names(thing.KIND))
    document["archived_at"] = thing.archived_at.isoformat() if thing.archived_at else None
    if isinstance(thing, Resource):
        document["path"] = thing.path
    if isinstance(thing, Item):
        document["extra"] = thing.extra
    return document


def _value(thing: Any, field: Field) -> Any:
    stored = getattr(thing, field.column or field.name)
    if field.vocabulary:
        return field.vocabulary(stored).label
    convert = _PUBLIC_VALUES.get(field.type)
    return stored if convert is None or stored is None else convert(thing, field.name, stored)


# How the value of a column is shown, by type of field. Other types are shown as they are stored.
_PUBLIC_VALUES: dict[Type, Callable[[Any, str, Any], Any]] = {
    "person": lambda thing, name, stored: getattr(thing, name).username,
    "epic": lambda thing, name, stored: Epic.make_ref(stored),
    "date": lambda thing, name, stored: stored.isoformat(),
    "number": lambda thing, name, stored: whole(stored),
}


def part_of(thing: Versioned, names: Iterable[str]) -> Document:
    """Return some writable fields of the document. Deferred columns of the others are not read."""
    fields = FIELDS[thing.KIND]
    return {name: _value(thing, fields[name]) for name in names}


def named_by(thing: Versioned) -> Document:
    """Return the fields of the document that name other items."""
    return part_of(thing, NAMING_FIELDS) if isinstance(thing, Task) else {}


def uri_of(thing: Versioned | IBFolder | IBResource) -> str:
    if isinstance(thing, IBFolder | IBResource):
        return uri_of_mirrored(thing)
    if isinstance(thing, Resource):
        return uris.build_path(thing.path)
    if isinstance(thing, Comment):
        return uris.build("comments", thing.pk)
    return uris.build(_COLLECTIONS[Kind(thing.KIND)], thing.ref)


def clean_changes(kind: str, changed: dict[str, Any]) -> Document:
    """Validate public values field by field.

    Unknown and protected names are rejected, never ignored.
    """
    cleaned: Document = {}
    for name, value in changed.items():
        field = field_of(kind, name)
        if field is None:
            raise ValidationFailed(
                f"There is no field {name!r}.",
                field=name,
                value=value,
                allowed_values=writable_names(kind),
            )
        if not field.writable:
            raise protected_field(kind, name)
        clean = field.clean(name, value)
        if cleaned.setdefault(field.name, clean) != clean:
            raise ValidationFailed(
                f"{name} and {field.name} are the same field with two values.", field=name
            )
    return cleaned


def protected_field(kind: str, name: str) -> PermissionDenied:
    return PermissionDenied(
        f"The field {name!r} is protected.",
        suggestion="Leave it out; it is kept by the server.",
        field=name,
        writable=writable_names(kind),
    )


def columns_for(actor: Actor, kind: str, changed: Document) -> dict[str, Any]:
    """Convert cleaned public values to model attributes, resolving names of users, epics and
    groups.
    """
    return {
        column: value
        for name, public in changed.items()
        for column, value in _columns(actor, field_of(kind, name), name, public).items()
    }


def _columns(actor: Actor, field: Field | None, name: str, value: Any) -> dict[str, Any]:
    if name == "archived_at":
        return {name: datetime.datetime.fromisoformat(value) if value else None}
    if field is None:
        return {name: value}
    if field.vocabulary:
        return {name: field.vocabulary[value.upper()]}
    convert = _COLUMN_VALUES.get(field.type)
    return convert(actor, name, value) if convert else {name: value}


# How a public value is stored, by type of field. Other types are stored as they are.
_COLUMN_VALUES: dict[Type, Callable[[Actor, str, Any], dict[str, Any]]] = {
    "person": lambda actor, name, value: {name: _person(name, value)},
    "epic": lambda actor, name, value: {name.removesuffix("_id"): _epic(actor, name, value)},
    "date": lambda actor, name, value: {
        name: datetime.date.fromisoformat(value) if value else None
    },
    "groups": lambda actor, name, value: {
        name: _groups(actor, value),
        "restricted": bool(value),
    },
}


def _person(name: str, username: str | None) -> User | None:
    if username is None:
        return None
    person = User.objects.filter(username=username, is_active=True).first()
    if person is None:
        raise ValidationFailed(f"There is no user {username!r}.", field=name, value=username)
    return person


def _epic(actor: Actor, name: str, ref: str | None) -> Epic | None:
    if ref is None:
        return None
    number = parse_ref(ref, "EPIC") or 0
    epic = Epic.objects.visible_to(actor.user).live().filter(pk=number).first()
    if epic is None:
        raise ValidationFailed(f"There is no epic {ref}.", field=name, value=ref)
    return epic


def _groups(actor: Actor, names: list[str]) -> list[str]:
    """Check that the actor belongs to the groups.

    Users can neither hide an object from themselves nor expose it to other groups. Admins may use
    any group.
    """
    known = Group.objects.filter(name__in=names)
    if not actor.is_admin:
        known = known.filter(pk__in=groups_of(actor.user).values())
    found = set(known.values_list("name", flat=True))
    if missing := [name for name in names if name not in found]:
        raise ValidationFailed(
            f"You are in no group {missing[0]!r}.", field="groups", value=missing[0]
        )
    return names


def visible_tasks(actor: Actor, refs: list[str]) -> dict[str, int]:
    """Return the ids by ref of the tasks that exist and are visible to the actor."""
    numbers = [number for ref in refs if (number := parse_ref(ref, "TASK")) is not None]
    visible = (
        Task.objects.visible_to(actor.user).filter(pk__in=numbers).values_list("pk", flat=True)
    )
    return {Task.make_ref(number): number for number in visible}
