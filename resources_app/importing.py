"""`import_tree`: a folder of backlog files into the backlog, through the write path. Run again, it changes nothing.

The file wins where it changed since it was last imported; what people changed here meanwhile stays. Nothing is deleted.
"""

import graphlib
import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from resources_app.access import Actor
from resources_app.backlog_tree import ARCHIVE, AREAS, FOLDERS, Report, Tree, comments_path
from resources_app.comment_files import MAX_BYTES as MAX_COMMENTS_BYTES
from resources_app.comment_files import CommentLine, read_lines
from resources_app.errors import BacklogError, ValidationFailed
from resources_app.importing_files import import_file
from resources_app.importing_items import ItemImport
from resources_app.item_files import ItemFile, read_item_file
from resources_app.vocabulary import Kind

Progress = Callable[[str], None]

_ITEM_NAME = re.compile(r"(?:TASK|EPIC)-[0-9]++.*\.md", re.ASCII | re.IGNORECASE)


def import_tree(actor: Actor, root: Path, progress: Progress = lambda _path: None) -> Report:
    return _Import(actor, root, progress).run()


def count_files(root: Path) -> int:
    return sum(len(paths) for paths in _find_files(Tree(root), Report()))


def _find_files(tree: Tree, report: Report) -> tuple[list[str], list[str]]:
    """Tasks and epics wherever backlog-mcp keeps them (tasks/ alone, epics/, archive/, the folder itself), and resources."""
    below = [path for folder in (*FOLDERS.values(), ARCHIVE, *AREAS) for path in tree.files(folder, report)]
    areas = tuple(f"{start}{area}/" for area in AREAS for start in ("", f"{ARCHIVE}/"))
    stored = [path for path in below if path.startswith(areas)]
    top = [name for name in tree.top_files() if _ITEM_NAME.fullmatch(name)]
    return [*top, *(path for path in below if path.lower().endswith(".md") and not path.startswith(areas))], stored


class _Import:
    def __init__(self, actor: Actor, root: Path, progress: Progress) -> None:
        self.actor = actor
        self.tree = Tree(root)
        self.progress = progress
        self.report = Report()
        self.items: dict[str, ItemFile] = {}

    def run(self) -> Report:
        item_paths, stored_paths = _find_files(self.tree, self.report)
        for path in item_paths:
            self._guard(path, partial(self._read_item, path))
        imports = [self._import_item(item) for item in self._in_order()]
        for done in imports:
            if done:
                self._guard(done.file.path, done.settle_archive)
        for path in stored_paths:
            self._guard(path, partial(import_file, self.actor, self.tree, path, self.report))
            self.progress(path)
        return self.report

    def _guard(self, path: str, step: Callable[[], None]) -> bool:
        """A file that cannot be imported is reported, and the rest goes in."""
        try:
            step()
        except BacklogError as error:
            self.report.fail(path, error.message)
            return False
        return True

    def _read_item(self, path: str) -> None:
        item = read_item_file(path, self.tree.read_text(path), self.tree.read_facts_beside(path))
        if item.ref in self.items:
            raise ValidationFailed(f"{item.ref} was read from {self.items[item.ref].path} already.")
        self.items[item.ref] = item

    def _in_order(self) -> Iterable[ItemFile]:
        """Epics before tasks, and each task after those it depends on."""
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

        self._guard(path, read)
        return lines


def _dependency_order(tasks: dict[str, ItemFile]) -> list[str]:
    """A circle cannot be imported: one of its dependencies is kept aside, as long as there is one."""
    needs = {ref: {need for need in item.values["depends_on"] if need in tasks} for ref, item in tasks.items()}
    while True:
        try:
            return list(graphlib.TopologicalSorter(needs).static_order())
        except graphlib.CycleError as error:
            needed, dependent = error.args[1][:2]
            needs[dependent].discard(needed)
            item = tasks[dependent]
            item.values["depends_on"] = [ref for ref in item.values["depends_on"] if ref != needed]
            item.keep("depends_on", [needed], f"{dependent} and {needed} depend on each other in a circle.")
