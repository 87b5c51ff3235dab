"""Suggest completions for the beginning of a name: a few users, items and files visible to the
user.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from backlog_site.viewer.queries.cards import Line, line_of
from backlog_site.viewer.queries.people import team
from resources_app.addresses.targets import AREAS
from resources_app.addresses.uris import build, build_path
from resources_app.fields.declarations import parse_ref
from resources_app.identity.roles import Actor
from resources_app.models import Epic, Task
from resources_app.reading import catalogue

MOST = 8
_BACKLOG = "mcp://backlog/"
_COLLECTIONS = {"tasks": Task.PREFIX, "epics": Epic.PREFIX}


@dataclass(frozen=True)
class Suggestion:
    # Replaces the typed text.
    text: str
    title: str
    icon: str = "resource"


def people(beginning: str) -> list[Suggestion]:
    """Suggest users by username or by one of their names."""
    wanted = beginning.casefold()
    found = [
        one
        for one in team()
        if any(
            name.casefold().startswith(wanted)
            for name in (one.username, one.name, *one.name.split())
        )
    ]
    return [Suggestion(f"@{one.username}", one.name, "user") for one in found[:MOST]]


def items(actor: Actor, beginning: str) -> list[Suggestion]:
    """Suggest items, such as TASK-0040 … TASK-0049 for TASK-004."""
    return [Suggestion(line.ref, line.title, _icon(line)) for line in _lines(actor, beginning)]


def addresses(actor: Actor, beginning: str) -> list[Suggestion]:
    """Suggest addresses one level of the tree at a time.

    A folder ends with a slash, so that typing can continue.
    """
    area, stroke, rest = beginning.removeprefix(_BACKLOG).partition("/")
    if stroke and area in _COLLECTIONS:
        found = _lines(actor, rest.upper() or f"{_COLLECTIONS[area]}-")
        return [Suggestion(build(area, line.ref), line.title, _icon(line)) for line in found]
    if stroke and area in AREAS:
        paths = catalogue.complete(actor, "path", unquote(rest), f"{_BACKLOG}{area}/{{path}}")
        return [_of_path(f"{area}/{path}") for path in paths[:MOST]]
    tops = [f"{_BACKLOG}{name}/" for name in (*_COLLECTIONS, *AREAS)]
    return [Suggestion(top, "", "folder") for top in tops if top.startswith(beginning)]


def _lines(actor: Actor, beginning: str) -> list[Line]:
    collection = "epics" if beginning.startswith("E") else "tasks"
    refs = catalogue.complete(actor, "id", beginning, f"{_BACKLOG}{collection}/{{id}}")[:MOST]
    model = Epic if collection == "epics" else Task
    rows: Any = model.objects.visible_to(actor.user).filter(
        pk__in=[parse_ref(ref, model.PREFIX) for ref in refs]
    )
    return [line_of(row) for row in rows.order_by("-number").only("number", "title", "status")]


def _of_path(path: str) -> Suggestion:
    is_folder = path.endswith("/")
    name = path.rstrip("/").rpartition("/")[2]
    return Suggestion(
        build_path(path.rstrip("/")) + "/" * is_folder, name, "folder" if is_folder else "resource"
    )


def _icon(line: Line) -> str:
    return "epic" if line.ref.startswith(Epic.PREFIX) else line.status
