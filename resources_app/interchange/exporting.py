"""Export everything the actor sees as files.

The output is deterministic. tree.py defines the layout.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from django.db.models import QuerySet

from resources_app.errors import BacklogError
from resources_app.files import frontmatter
from resources_app.files.contents import examine, facts_of
from resources_app.history.documents import document_of
from resources_app.identity.roles import Actor
from resources_app.interchange.comment_files import lines_of
from resources_app.interchange.file_layout import item_text
from resources_app.interchange.tree import (
    ARCHIVE,
    OWN_FOLDERS,
    Report,
    Tree,
    comments_path,
    item_path,
    metadata_path,
)
from resources_app.models import Comment, Epic, Resource, Task
from resources_app.reading.markdown import item_frontmatter, write_body, write_time

# Keys that stay in the file if the frontmatter is too long.
_SHORT_KEYS = ("id", "status", "type", "created_at", "updated_at", "archived_at")

Progress = Callable[[str], None]


def export_tree(
    actor: Actor, root: Path, *, prune: bool = False, progress: Progress = lambda _path: None
) -> Report:
    """Export the tree.

    `prune` removes the files of deleted objects and leaves everything else alone.
    """
    return _Export(actor, root, progress).run(prune=prune)


def count_things(actor: Actor) -> int:
    return sum(
        rows.count() for rows in (_items(actor, Epic), _items(actor, Task), _resources(actor))
    )


def _items(actor: Actor, model: type[Task] | type[Epic]) -> QuerySet[Any]:
    return model.objects.visible_to(actor.user).select_related("assignee").order_by("pk")


def _resources(actor: Actor) -> QuerySet[Resource]:
    """Return the stored files. Mirrored files already exist at their source."""
    return Resource.objects.visible_to(actor.user).filter(root="").order_by("path")


class _Export:
    def __init__(self, actor: Actor, root: Path, progress: Progress) -> None:
        self.actor = actor
        self.tree = Tree(root)
        self.progress = progress
        self.report = Report()
        self.present: set[str] = set()

    def run(self, *, prune: bool) -> Report:
        self.tree.root.mkdir(parents=True, exist_ok=True)
        for model in (Epic, Task):
            comments = _Comments(self.actor, model)
            for item in _items(self.actor, model).iterator(chunk_size=500):
                self._guard(item.ref, partial(self._write_item, item, comments.of(item)))
        for resource in _resources(self.actor).iterator(chunk_size=50):
            self._guard(resource.path, partial(self._write_resource, resource))
        if prune:
            self._prune()
        return self.report

    def _guard(self, name: str, write: Callable[[], None]) -> None:
        """Report an object that cannot be written and continue with the others."""
        try:
            write()
        except BacklogError as error:
            self.report.fail(name, error.message)
        self.progress(name)

    def _write_item(self, item: Task | Epic, comments: list[Comment]) -> None:
        archived = item.archived_at is not None
        path = item_path(item.KIND, item.ref, archived=archived)
        text, beside = _item_file(item)
        self._place(path, text.encode())
        self._place_or_remove(metadata_path(path), beside)
        lines = "".join(line.render() for line in lines_of(item, comments))
        self._place_or_remove(comments_path(item.ref), lines.encode())
        elsewhere = item_path(item.KIND, item.ref, archived=not archived)
        self._place_or_remove(elsewhere, b"")
        self._place_or_remove(metadata_path(elsewhere), b"")

    def _write_resource(self, resource: Resource) -> None:
        live, archived = resource.path, f"{ARCHIVE}/{resource.path}"
        path, elsewhere = (archived, live) if resource.archived_at else (live, archived)
        raw = _bytes_of(resource)
        self._place_or_remove(elsewhere, b"")
        self._place_or_remove(metadata_path(elsewhere), b"")
        self._place(path, raw)
        self._place_or_remove(metadata_path(path), _as_json(_facts_beside(resource, raw)))

    def _place(self, path: str, content: bytes) -> None:
        self.present.add(path)
        self.report.counts["written" if self.tree.write(path, content) else "unchanged"] += 1

    def _place_or_remove(self, path: str, content: bytes) -> None:
        """Write the file, or remove it if empty: the next import would take a stale file as
        current.
        """
        if content:
            self._place(path, content)
        elif self.tree.remove(path):
            self.report.counts["removed"] += 1

    def _prune(self) -> None:
        for folder in OWN_FOLDERS:
            for path in list(self.tree.files(folder, self.report)):
                if path not in self.present and self.tree.remove(path):
                    self.report.counts["removed"] += 1


class _Comments:
    """Stream all comments in item order, alongside the items."""

    def __init__(self, actor: Actor, model: type[Task] | type[Epic]) -> None:
        column = f"{model.KIND}_id"
        rows = Comment.objects.visible_to(actor.user).filter(**{f"{column}__isnull": False})
        ordered = (
            rows.select_related("author")
            .order_by(column, "created_at", "pk")
            .iterator(chunk_size=500)
        )
        self._groups: Iterator[tuple[int, Iterator[Comment]]] = groupby(
            ordered, key=lambda row: getattr(row, column)
        )
        self._next: tuple[int, list[Comment]] | None = (0, [])

    def of(self, item: Task | Epic) -> list[Comment]:
        while self._next and self._next[0] < item.pk:
            group = next(self._groups, None)
            self._next = (group[0], list(group[1])) if group else None
        return self._next[1] if self._next and self._next[0] == item.pk else []


def _item_file(item: Task | Epic) -> tuple[str, bytes]:
    """Return the markdown, and the frontmatter as a separate file if it exceeds the size limit for
    reading.
    """
    document = document_of(item)
    facts, body = item_frontmatter(item, document), write_body(document["description"])
    text = frontmatter.render(facts, body)
    if len(text.encode()) - len(body.encode()) <= frontmatter.MAX_BYTES:
        return item_text(item), b""
    short = {"title": document["title"], **{key: facts[key] for key in _SHORT_KEYS if key in facts}}
    return frontmatter.render(short, body), _as_json(facts)


def _bytes_of(resource: Resource) -> bytes:
    return (
        resource.content.encode() if resource.content is not None else bytes(resource.blob or b"")
    )


def _facts_beside(resource: Resource, raw: bytes) -> dict[str, Any]:
    """Return only the metadata that cannot be derived from the name and the bytes."""
    found, derived = examine(resource.path, raw), facts_of(resource.path, resource.content or "")
    facts: dict[str, Any] = {
        name: getattr(resource, name)
        for name in derived
        if getattr(resource, name) != derived[name]
    }
    if resource.groups:
        facts["groups"] = resource.groups
    if (resource.mime_type, resource.is_text) != (found.mime_type, found.text is not None):
        facts["mime_type"] = resource.mime_type
    if resource.archived_at:
        facts["archived_at"] = write_time(resource.archived_at)
    return facts


def _as_json(facts: dict[str, Any]) -> bytes:
    return (json.dumps(facts, ensure_ascii=False, indent=1) + "\n").encode() if facts else b""
