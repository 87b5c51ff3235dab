"""List everything a user can read, page by page, and complete the variables of a pattern."""

from collections.abc import Callable
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.history.documents import uri_of
from resources_app.identity.roles import Actor, may_read
from resources_app.intelligencebank import browsing
from resources_app.models import Epic, IBFolder, Resource, Task
from resources_app.models.backlog import Item
from resources_app.reading.patterns import PatternSection
from resources_app.reading.registry import REGISTRY
from resources_app.reading.variables import MAX_COMPLETIONS as MAX_COMPLETIONS
from resources_app.reading.variables import PARAMETERS

PAGE = 100

Row = dict[str, Any]
# Takes the actor, the last row shown and a limit; returns rows with their positions.
Lister = Callable[[Actor, int, int], list[tuple[int, Row]]]


def list_catalogue(actor: Actor, cursor: str | None) -> tuple[list[Row], str | None]:
    """Return a page of fixed URIs, then epics, tasks and files, each kind in order of creation.

    The order is the same for every connection.
    """
    section, after = _position(cursor)
    rows: list[Row] = []
    sections = _sections()
    while len(rows) < PAGE and section < len(sections):
        found = sections[section](actor, after, PAGE - len(rows))
        rows += [row for _, row in found]
        if len(rows) == PAGE:
            return rows, f"{section}:{found[-1][0]}" if found else f"{section}:{after}"
        section, after = section + 1, 0
    return rows, None


def complete(actor: Actor, variable: str, value: str, pattern: str = "") -> list[str]:
    """Return the values of `{variable}` that start with `value` and are visible to the user."""
    if not may_read(actor.user):
        return []
    entry = REGISTRY.entry_of(pattern)
    found = entry.fill_of(variable) if entry else None
    found = found or PARAMETERS.get(variable)
    return found.complete(actor, value) if found else []


def _fixed(actor: Actor, after: int, limit: int) -> list[tuple[int, Row]]:
    entries = [
        entry
        for entry in REGISTRY
        if not entry.is_template
        and (actor.is_admin or not entry.requires_admin)
        and (entry.is_public or may_read(actor.user))
    ]
    rows = [
        _row(entry.pattern, entry.name, entry.description, entry.mime_type) for entry in entries
    ]
    return list(enumerate(rows, start=1))[after : after + limit]


def _items(model: type[Task] | type[Epic]) -> Lister:
    def rows(actor: Actor, after: int, limit: int) -> list[tuple[int, Row]]:
        found = (
            model.objects.visible_to(actor.user).live().filter(number__gt=after).order_by("number")
        )
        only = found.only("number", "title", "updated_at")
        return [(item.number, _item_row(item)) for item in only[:limit]]

    return rows


def _files(actor: Actor, after: int, limit: int) -> list[tuple[int, Row]]:
    found = Resource.objects.visible_to(actor.user).live().filter(pk__gt=after).order_by("pk")
    only = found.only("path", "title", "description", "mime_type", "size", "updated_at")
    return [(resource.pk, _file_row(resource)) for resource in only[:limit]]


def _ib_folders(actor: Actor, after: int, limit: int) -> list[tuple[int, Row]]:
    return [
        (folder.pk, _ib_row(folder)) for folder in browsing.top_folders(actor.user, after, limit)
    ]


_LISTERS: dict[PatternSection, Lister] = {
    PatternSection.EPICS: _items(Epic),
    PatternSection.TASKS: _items(Task),
    PatternSection.FILES: _files,
    PatternSection.IB_FOLDERS: _ib_folders,
}


def _sections() -> list[Lister]:
    listed = {entry.listed for entry in REGISTRY if entry.listed is not None}
    return [_fixed, *(_LISTERS[section] for section in sorted(listed))]


def _item_row(item: Item) -> Row:
    row = _row(uri_of(item), item.ref, item.title, "application/json")
    return row | {"title": f"{item.ref} {item.title}", "updated_at": item.updated_at.isoformat()}


def _file_row(resource: Resource) -> Row:
    row = _row(uri_of(resource), resource.path, resource.description, resource.mime_type)
    return row | {
        "title": resource.title or resource.path,
        "size": resource.size,
        "updated_at": resource.updated_at.isoformat(),
    }


def _ib_row(folder: IBFolder) -> Row:
    row = _row(uri_of(folder), folder.name, browsing.describe_folder(folder), browsing.FOLDER_MIME)
    return row | {
        "updated_at": folder.updated_at.isoformat(),
        "annotations": {"audience": ["user", "assistant"], "priority": 0.5},
        "meta": {"untrusted": ["name", "title", "description"], "note": browsing.UNTRUSTED["note"]},
    }


def _row(uri: str, name: str, description: str, mime_type: str) -> Row:
    return {
        "uri": uri,
        "name": name,
        "title": name,
        "description": description,
        "mime_type": mime_type,
    }


def _position(cursor: str | None) -> tuple[int, int]:
    if not cursor:
        return 0, 0
    section, _, after = cursor.partition(":")
    if not all(part.isascii() and part.isdigit() and len(part) < 19 for part in (section, after)):
        raise ValidationFailed(
            "cursor must be the nextCursor of an earlier answer.", field="cursor", value=cursor
        )
    return int(section), int(after)
