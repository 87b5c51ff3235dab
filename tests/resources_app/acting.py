"""Shorten what the tests of the write path do repeatedly to one line each."""

from typing import Any, TypeVar

from django.contrib.auth.models import User
from django.db.models import Model

from resources_app.history import revisions
from resources_app.history.documents import document_of, uri_of
from resources_app.models import (
    Change,
    Comment,
    Epic,
    EpicLabel,
    IdempotencyKey,
    Revision,
    Sequence,
    Task,
    TaskDependency,
    TaskLabel,
)
from resources_app.models.base import Versioned
from resources_app.writing import write_path
from tests.factories import as_actor

V = TypeVar("V", bound=Versioned)

STORED: tuple[type[Model], ...] = (
    Change,
    Comment,
    Epic,
    EpicLabel,
    IdempotencyKey,
    Revision,
    Sequence,
    Task,
    TaskDependency,
    TaskLabel,
)


def write(
    user: User, thing: Versioned, *rest: object, etag: Any = None, **operation: Any
) -> dict[str, Any]:
    return write_path.write(as_actor(user), address(thing, *rest), operation, etag)


def address(thing: Versioned, *rest: object) -> str:
    return "/".join([uri_of(thing), *map(str, rest)])


def again(thing: V) -> V:
    """Return the object as the database has it now."""
    return type(thing)._base_manager.get(pk=thing.pk)


def everything() -> dict[str, list[dict[str, Any]]]:
    """Return everything stored, to show that a rejected write or dry run left nothing."""
    return {model.__name__: list(model._base_manager.order_by("pk").values()) for model in STORED}


def is_replayed(thing: Versioned) -> bool:
    """Return whether the history has every version once and ends with the current object."""
    versions = Revision.objects.filter(kind=thing.KIND, object_id=thing.pk).order_by("version")
    assert list(versions.values_list("version", flat=True)) == list(
        range(1, again(thing).version + 1)
    )
    return revisions.document_at(thing.KIND, thing.pk, again(thing).version) == document_of(
        again(thing)
    )
