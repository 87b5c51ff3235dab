"""List everything a user can read, page by page, and complete the variables of a pattern."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db.models import Q

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import FIELDS
from resources_app.history.documents import uri_of
from resources_app.identity.roles import Actor, Person, may_read
from resources_app.intelligencebank import browsing
from resources_app.models import Epic, Folder, IBConnection, IBFolder, IBResource, Resource, Task
from resources_app.models.backlog import Item
from resources_app.reading.by_address import read
from resources_app.reading.registry import REGISTRY
from resources_app.reading.templates import TEMPLATES
from resources_app.vocabulary import Kind, Priority, Status

PAGE = 100
MAX_COMPLETIONS = 100
_LARGEST_NUMBER_WIDTH = 9

Row = dict[str, Any]


def list_catalogue(actor: Actor, cursor: str | None) -> tuple[list[Row], str | None]:
    """Return a page of fixed URIs, then epics, tasks and files, each kind in order of creation.

    The order is the same for every connection.
    """
    section, after = _position(cursor)
    rows: list[Row] = []
    while len(rows) < PAGE and section < len(_SECTIONS):
        found = _SECTIONS[section](actor, after, PAGE - len(rows))
        rows += [row for _, row in found]
        if len(rows) == PAGE:
            return rows, f"{section}:{found[-1][0]}" if found else f"{section}:{after}"
        section, after = section + 1, 0
    return rows, None


def complete(actor: Actor, variable: str, value: str, pattern: str = "") -> list[str]:
    """Return the values of `{variable}` that start with `value` and are visible to the user."""
    if not may_read(actor.user):
        return []
    if pattern.startswith("ib://"):
        return _mirrored(actor.user, variable, value, pattern)
    words = _WORDS.get(variable)
    if words is not None:
        return [word for word in words if word.startswith(value)][:MAX_COMPLETIONS]
    if variable == "path":
        return _paths(actor.user, value, "artifacts/" if "artifacts" in pattern else "resources/")
    if variable == "id" and pattern.startswith("workflow://"):
        runs = read(actor, "workflow://workflows").contents["results"]
        return [str(run["id"]) for run in runs if str(run["id"]).startswith(value)][
            :MAX_COMPLETIONS
        ]
    return _ids(actor.user, variable, value, pattern) if variable in {"id", "epic_id"} else []


def _ids(user: Person, variable: str, value: str, pattern: str) -> list[str]:
    is_archive = "/archive/" in pattern
    models: list[type[Task] | type[Epic]] = (
        [Epic] if "epic" in pattern or variable == "epic_id" else [Task]
    )
    if is_archive or "/context/" in pattern:
        models = [Task, Epic]
    return [ref for model in models for ref in _refs(user, model, value, archived=is_archive)][
        :MAX_COMPLETIONS
    ]


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


def _items(model: type[Task] | type[Epic]) -> Callable[[Actor, int, int], list[tuple[int, Row]]]:
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


_SECTIONS: Sequence[Callable[[Actor, int, int], list[tuple[int, Row]]]] = (
    *(_fixed, _items(Epic), _items(Task), _files),
    _ib_folders,
)


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


def _mirrored(user: Person, variable: str, value: str, pattern: str) -> list[str]:
    """Complete client ids, and ids of mirrored objects that the user can see."""
    if variable == "clientid":
        rows: Any = (
            IBConnection.objects.visible_to(user)
            .filter(client_id__startswith=value)
            .order_by("client_id")
        )
        return list(rows.values_list("client_id", flat=True)[:MAX_COMPLETIONS])
    if variable != "id":
        return []
    model = IBFolder if "/folders/" in pattern else IBResource
    # "g" sorts after every hex digit of an id, so the prefix becomes an index range.
    prefixed = model.objects.filter(
        connection__links__user_id=user.pk or 0, ib_id__gte=value, ib_id__lt=f"{value}g"
    )
    found = prefixed.visible_to(user).order_by("ib_id")
    ids = list(found.values_list("ib_id", flat=True)[:MAX_COMPLETIONS])
    return [*(["root"] if model is IBFolder and "root".startswith(value) else []), *ids][
        :MAX_COMPLETIONS
    ]


def _refs(user: Person, model: type[Task] | type[Epic], value: str, *, archived: bool) -> list[str]:
    """Complete refs: TASK-004 → TASK-0040 … TASK-0049.

    The prefix becomes ranges of the primary key.
    """
    prefix = f"{model.PREFIX}-"
    digits = value.removeprefix(prefix) if value.startswith(prefix) else ""
    if (digits and not (digits.isascii() and digits.isdigit())) or not (
        prefix.startswith(value) or digits
    ):
        return []
    seen = model.objects.visible_to(user)
    rows = (
        (seen.archived() if archived else seen.live()).filter(_ranges(digits)).order_by("-number")
    )
    return [
        model.make_ref(number) for number in rows.values_list("number", flat=True)[:MAX_COMPLETIONS]
    ]


def _ranges(digits: str) -> Q:
    condition = Q(number__gte=1) if not digits else Q(pk__in=[])
    for width in range(max(4, len(digits)), _LARGEST_NUMBER_WIDTH + 1) if digits else ():
        low, high = int(digits.ljust(width, "0")), int(digits.ljust(width, "9"))
        if width == 4 or not digits.startswith("0"):
            condition |= Q(number__gte=low, number__lte=high)
    return condition


def _paths(user: Person, value: str, area: str) -> list[str]:
    """Complete the folders and files of the level being typed."""
    folder, _, name = (area + value).rpartition("/")
    folders = Folder.objects.visible_to(user).filter(parent__path=folder)
    files = Resource.objects.visible_to(user).live().filter(folder__path=folder)
    found = [
        *(
            f"{path}/"
            for path in folders.order_by("path").values_list("path", flat=True)[
                : 10 * MAX_COMPLETIONS
            ]
        ),
        *files.order_by("path").values_list("path", flat=True)[: 10 * MAX_COMPLETIONS],
    ]
    typed = f"{folder}/{name}"
    return [path.removeprefix(area) for path in found if path.startswith(typed)][:MAX_COMPLETIONS]


_WORDS: dict[str, list[str]] = {
    "field": list(FIELDS[Kind.TASK]),
    "template": list(TEMPLATES),
    "status": [str(label) for label in Status.labels],
    "priority": [str(label) for label in Priority.labels],
}
