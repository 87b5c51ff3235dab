"""Import a folder of backlog files through the write path. Running it again changes nothing.

The file wins where it changed since its last import; local changes made since then stay. Nothing is
deleted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from django.db import DataError

from resources_app.errors import BacklogError, ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.interchange.comment_files import MAX_BYTES as MAX_COMMENTS_BYTES
from resources_app.interchange.comment_files import CommentLine, read_lines
from resources_app.interchange.import_files import import_file
from resources_app.interchange.import_folders import FolderImport, FolderMode
from resources_app.interchange.import_items import ItemImport
from resources_app.interchange.item_files import ItemFile, read_item_file
from resources_app.interchange.tree import (
    ARCHIVE,
    AREAS,
    COMMENTS,
    FOLDERS,
    METADATA,
    Report,
    Tree,
    comments_path,
    metadata_path,
)
from resources_app.vocabulary import Kind

Progress = Callable[[str], None]

_ITEM_NAME = re.compile(r"(?:TASK|EPIC)-[0-9]++.*\.md", re.ASCII | re.IGNORECASE)
_FOLDER_NAME = re.compile(r"FLDR-[0-9]++.*\.md", re.ASCII | re.IGNORECASE)
# Other kinds that newer versions of backlog-mcp keep among the tasks: MLST-0001, ARTF-0001,
# CRON-0001 …
_OTHER_NAME = re.compile(r"(?!TASK|EPIC)[A-Z]{2,8}-[0-9]++.*\.md", re.ASCII)
_STORED = tuple(f"{start}{area}/" for area in AREAS for start in ("", f"{ARCHIVE}/"))
_ITEM_FOLDERS = (*FOLDERS.values(), ARCHIVE)

NO_PLACE = "It is not a task, an epic or an attached file. With --documents it becomes a resource."
NO_OWNER = "It belongs to no file of this folder that was imported."
FOLDER = "It is a folder of backlog-mcp. With --folders it becomes an epic or a label."


def import_tree(
    actor: Actor,
    root: Path,
    progress: Progress = lambda _path: None,
    *,
    folders: FolderMode | None = None,
    documents: bool = False,
) -> Report:
    return _Import(actor, root, progress, folders, documents=documents).run()


def count_files(root: Path) -> int:
    found = _find_files(Tree(root), Report())
    return len(found.items) + len(found.stored)


@dataclass
class _Found:
    """List the files of a tree.

    `beside` has comments and metadata, `documents` the files without a counterpart here.
    """

    items: list[str] = field(default_factory=list)
    stored: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


def _find_files(tree: Tree, report: Report) -> _Found:
    """Find tasks and epics in every place backlog-mcp uses, and all other files.

    The places are tasks/ alone, epics/, archive/ and the root folder.
    """
    found = _Found()
    for path in tree.all_files(report):
        _list_of(found, path).append(path)
    return found


def _list_of(found: _Found, path: str) -> list[str]:
    top, _, name = path.partition("/")[0], *path.rpartition("/")[1:]
    if path.startswith(_STORED):
        return found.stored
    if top in (COMMENTS, METADATA) and "/" in path:
        return found.beside
    if _FOLDER_NAME.fullmatch(name):
        return found.folders
    if _is_item(path, name, top):
        return found.items
    return found.documents


def _is_item(path: str, name: str, top: str) -> bool:
    if "/" not in path:
        return bool(_ITEM_NAME.fullmatch(name))
    return top in _ITEM_FOLDERS and name.lower().endswith(".md") and not _OTHER_NAME.fullmatch(name)


class _Import:
    def __init__(
        self,
        actor: Actor,
        root: Path,
        progress: Progress,
        folders: FolderMode | None,
        *,
        documents: bool,
    ) -> None:
        self.actor = actor
        self.tree = Tree(root)
        self.progress = progress
        self.report = Report()
        self.items: dict[str, ItemFile] = {}
        self.folders = FolderImport(self.tree, folders)
        self.documents = documents

    def run(self) -> Report:
        found = _find_files(self.tree, self.report)
        for path in found.items:
            self._guard(path, partial(self._read_item, path))
        for path in found.folders:
            self._guard(path, partial(self.folders.read, path))
        for path in self.folders.apply(self.items):
            self.report.leave_out(path, FOLDER)
        imports = [self._import_item(item) for item in self._in_order()]
        for done in imports:
            if done:
                self._guard(done.file.path, done.settle_archive)
        for path in found.stored:
            self._import_file(path)
        self._take_documents(found)
        return self.report

    def _import_file(self, path: str, *, as_document: bool = False) -> None:
        step = partial(
            import_file, self.actor, self.tree, path, self.report, as_document=as_document
        )
        self._guard(path, step)
        self.progress(path)

    def _take_documents(self, found: _Found) -> None:
        for path in found.documents:
            if self.documents:
                self._import_file(path, as_document=True)
            else:
                self.report.leave_out(path, NO_PLACE)
        owned = {comments_path(ref) for ref in self.items}
        owned |= {metadata_path(path) for path in (*found.items, *found.stored, *found.documents)}
        for path in found.beside:
            if path not in owned:
                self.report.leave_out(path, NO_OWNER)

    def _guard(self, path: str, step: Callable[[], None]) -> bool:
        """Report a file that cannot be imported and continue with the rest."""
        try:
            step()
        except BacklogError as error:
            self.report.fail(path, error.message)
            return False
        except (OverflowError, DataError) as error:
            self.report.fail(path, f"It holds a value that cannot be stored: {error}".strip())
            return False
        return True

    def _read_item(self, path: str) -> None:
        item = read_item_file(path, self.tree.read_text(path), self.tree.read_facts_beside(path))
        if item.ref in self.items:
            raise ValidationFailed(f"{item.ref} was read from {self.items[item.ref].path} already.")
        self.items[item.ref] = item

    def _in_order(self) -> Iterable[ItemFile]:
        """Yield epics before tasks, and each task after its dependencies."""
        yield from (item for item in self.items.values() if item.kind == Kind.EPIC)
        tasks = {ref: item for ref, item in self.items.items() if item.kind == Kind.TASK}
        yield from (tasks[ref] for ref in _dependency_order(tasks))

    def _import_item(self, item: ItemFile) -> ItemImport | None:
        self.progress(item.path)
        step = ItemImport(self.actor, item, self._comments(item), self.report)
        done = self._guard(item.path, step.run)
        self.report.warn(item.path, *item.warnings)
        return step if done else None

    def _comments(self, item: ItemFile) -> list[CommentLine]:
        path = comments_path(item.ref)
        if not self.tree.has(path):
            return []
        lines: list[CommentLine] = []

        def read() -> None:
            found, problems = read_lines(self.tree.read_text(path, MAX_COMMENTS_BYTES))
            lines.extend(found)
            for problem in problems:
                self.report.fail(path, problem)
            if unknown := Counter(key for line in found for key in line.unknown):
                named = ", ".join(f"{key!r} ({count} times)" for key, count in unknown.items())
                self.report.warn(path, f"Comments have no place for {named}. Left out.")

        self._guard(path, read)
        return lines


def _dependency_order(tasks: dict[str, ItemFile]) -> list[str]:
    """Order tasks after their dependencies, depth first.

    A dependency that closes a cycle is set aside.
    """
    order: dict[str, None] = {}
    for start in tasks:
        path: dict[str, Iterator[str]] = {}
        _enter(start, tasks, path, order)
        while path:
            ref, needs = next(reversed(path.items()))
            needed = next(needs, None)
            if needed is None:
                order[path.popitem()[0]] = None
            elif needed in path:
                _break_circle(tasks[ref], needed)
            else:
                _enter(needed, tasks, path, order)
    return list(order)


def _enter(
    ref: str, tasks: dict[str, ItemFile], path: dict[str, Iterator[str]], order: dict[str, None]
) -> None:
    if ref not in order:
        path[ref] = iter([need for need in tasks[ref].values["depends_on"] if need in tasks])


def _break_circle(item: ItemFile, needed: str) -> None:
    item.values["depends_on"] = [ref for ref in item.values["depends_on"] if ref != needed]
    item.keep("depends_on", [needed], f"{item.ref} and {needed} depend on each other in a circle.")
