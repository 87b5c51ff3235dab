"""Write, import, export and inspect folders of backlog files for tests."""

from pathlib import Path

from django.contrib.auth.models import Group, User

from resources_app.identity.roles import ROLES, Actor
from resources_app.interchange.exporting import export_tree
from resources_app.interchange.importing import import_tree
from resources_app.interchange.tree import Report
from resources_app.models import (
    Change,
    Comment,
    Epic,
    Folder,
    Resource,
    Revision,
    Sequence,
    Task,
    TaskDependency,
)
from tests.factories import make_user

MCP_TREE = Path(__file__).parent.parent / "fixtures" / "backlog_mcp_tree"


def importer() -> Actor:
    return Actor(make_user("carol", "admin"), "import")


def run_import(folder: Path) -> Report:
    return import_tree(importer(), folder)


def run_export(folder: Path, *, prune: bool = False) -> Report:
    return export_tree(importer(), folder, prune=prune)


def write_file(folder: Path, path: str, content: str | bytes) -> Path:
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else content.encode())
    return place


def contents_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def empty_the_database() -> None:
    """Empty the database to its state after the first migrate: only roles and counters."""
    for model in (Revision, Change, Comment, TaskDependency, Task, Epic, Resource):
        model.objects.all().delete()
    for folder in Folder.objects.order_by("-path"):
        folder.delete()
    User.objects.all().delete()
    Group.objects.exclude(name__in=ROLES).delete()
    Sequence.objects.update(last=0)


def reasons(problems: list[tuple[str, str]]) -> dict[str, str]:
    """Return everything reported about each path."""
    said: dict[str, str] = {}
    for path, message in problems:
        said[path] = f"{said.get(path, '')}{message}\n"
    return said
