"""Build the target of a write: an object, one of its fields, or one element of a list field."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from resources_app.addresses.uris import Uri
from resources_app.errors import InvalidOperation, NotFound, PermissionDenied
from resources_app.fields.declarations import FIELDS, Field, field_of, parse_ref
from resources_app.history.documents import MODELS
from resources_app.identity.roles import Person
from resources_app.models.backlog import Item
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind

_PREFIXES = {"tasks": (Kind.TASK, "TASK"), "epics": (Kind.EPIC, "EPIC")}
AREAS = ("resources", "artifacts")
ARCHIVE = "archive"
# What can be read below the path of a file.
FILE_PARTS = ("versions", "schema")

# The values of a pattern's variables.
Variables = Mapping[str, str]


@dataclass(frozen=True)
class Target:
    kind: str
    # The column and value that identify the row: ("pk", 42) or ("path", "resources/a.md").
    lookup: tuple[str, Any]
    field: Field | None = None
    index: int | None = None

    @property
    def etag_field(self) -> str:
        return self.field.name if self.field else ""


def item_target(collection: str, ref: str) -> Target:
    kind, prefix = _PREFIXES[collection]
    number = parse_ref(ref, prefix)
    if number is None:
        raise NotFound(
            f"There is no {kind.value} {ref!r}.", suggestion=f"Ids look like {prefix}-0001.", id=ref
        )
    return Target(kind, ("pk", number))


def field_target(collection: str, ref: str, name: str, index: str | None = None) -> Target:
    item = item_target(collection, ref)
    field = field_of(item.kind, name)
    if field is None:
        raise NotFound(f"There is no field {name!r}.", field=name, fields=sorted(FIELDS[item.kind]))
    if index is None:
        return Target(item.kind, item.lookup, field)
    if field.shape != "array" or not index.isascii() or not index.isdigit() or len(index) > 6:
        raise NotFound(f"{name} has no element {index!r}.", field=name)
    return Target(item.kind, item.lookup, field, int(index))


def comment_target(number: str) -> Target:
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise NotFound(f"There is no comment {number!r}.")
    return Target(Kind.COMMENT, ("pk", int(number)), FIELDS[Kind.COMMENT]["body"])


def resource_target(path: str) -> Target:
    return Target(Kind.RESOURCE, ("path", path))


def file_path(uri: Uri) -> str:
    """Return the path at which a file is stored: archive/resources/a.md → resources/a.md."""
    return "/".join(uri.segments[uri.segments[0] == ARCHIVE :])


def path_target(uri: Uri, _variables: Variables) -> Target:
    return resource_target(uri.path)


def visible_thing(user: Person, target: Target) -> Versioned:
    return fetch(MODELS[target.kind].objects.visible_to(user), target)


def fetch(rows: Any, target: Target) -> Versioned:
    column, value = target.lookup
    thing: Versioned | None = (
        rows.select_related(*_RELATED[target.kind]).filter(**{column: value}).first()
    )
    if thing is None:
        raise NotFound(f"There is no {target.kind} {_name(target)} (or it is not visible to you).")
    return thing


def fetch_all(rows: Any, kind: str, column: str, values: Collection[Any]) -> dict[Any, Versioned]:
    """Return the rows by the value that identifies them, with one query."""
    found = rows.select_related(*_RELATED[kind]).filter(**{f"{column}__in": values})
    return {getattr(thing, column): thing for thing in found}


def _name(target: Target) -> str:
    _, value = target.lookup
    model = MODELS[target.kind]
    return model.make_ref(value) if issubclass(model, Item) else str(value)


def only_read(uri: Uri | str) -> InvalidOperation:
    return InvalidOperation(
        "This address can only be read.",
        suggestion="Write to the thing itself or to one of its fields.",
        uri=str(uri),
        allowed=[],
    )


def archived_only_read(uri: Uri) -> PermissionDenied:
    return PermissionDenied(
        "Archived tasks are read-only", suggestion="Unarchive it first.", uri=str(uri)
    )


def archived_file_only_read(uri: Uri) -> PermissionDenied:
    return PermissionDenied(
        "Archived files are read-only.",
        suggestion="Create the file again at its path; that continues its history.",
        uri=str(uri),
    )


_RELATED: dict[str, tuple[str, ...]] = {
    Kind.TASK: ("assignee",),
    Kind.EPIC: ("assignee",),
    Kind.COMMENT: ("task", "epic", "author"),
    Kind.RESOURCE: (),
}
