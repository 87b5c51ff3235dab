"""Read and write a folder of backlog files, never through a symbolic link, and define its
layout.
"""

import json
import os
import secrets
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.vocabulary import Kind

ARCHIVE, COMMENTS, METADATA = "archive", "comments", "metadata"
AREAS = ("resources", "artifacts")
FOLDERS = {Kind.TASK: "tasks", Kind.EPIC: "epics"}
OWN_FOLDERS = (*FOLDERS.values(), ARCHIVE, COMMENTS, METADATA, *AREAS)
# More than the longest description takes in UTF-8. Larger files are rejected unread.
MAX_ITEM_BYTES = 10_000_000
MAX_FACTS_BYTES = 100_000_000

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass
class Report:
    """Report what an import or export did and what needs attention."""

    counts: Counter[str] = field(default_factory=Counter)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    failures: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def warn(self, path: str, *messages: str) -> None:
        self.warnings += [(path, message) for message in messages]

    def fail(self, path: str, message: str) -> None:
        """Report a path that was rejected because something is wrong with it."""
        self.failures.append((path, message))

    def leave_out(self, path: str, reason: str) -> None:
        """Report a path that is out of scope."""
        self.left_out.append((path, reason))


def item_path(kind: str, ref: str, *, archived: bool) -> str:
    return f"{ARCHIVE if archived else FOLDERS[Kind(kind)]}/{ref}.md"


def comments_path(ref: str) -> str:
    return f"{COMMENTS}/{ref}.jsonl"


def metadata_path(path: str) -> str:
    """Return the path of the metadata that a file cannot hold itself."""
    return f"{METADATA}/{path}.json"


class Tree:
    """Access a folder of backlog files. Paths are relative to the root and use slashes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def files(self, folder: str, report: Report) -> Iterator[str]:
        """Yield everything below the folder, in order. Links are reported and not followed."""
        top = self.root / folder
        if top.is_symlink():
            report.fail(folder, "It is a symbolic link and was not followed.")
            return
        for place, folders, names in os.walk(top):
            folders.sort()
            links = [name for name in folders if (Path(place) / name).is_symlink()]
            for name in sorted([*names, *links]):
                path = (Path(place) / name).relative_to(self.root).as_posix()
                if (Path(place) / name).is_symlink():
                    report.fail(path, "It is a symbolic link and was not followed.")
                elif not name.startswith("."):
                    yield path

    def all_files(self, report: Report) -> Iterator[str]:
        """Yield every file, in order.

        Links are reported and not followed; hidden files and folders are reported by name only.
        """
        for place, folders, names in os.walk(self.root):
            visible = [
                name for name in sorted(folders) if not self._passes_over(place, name, report)
            ]
            folders[:] = visible
            yield from (
                self._relative(place, name)
                for name in sorted(names)
                if not self._passes_over(place, name, report)
            )

    def _passes_over(self, place: str, name: str, report: Report) -> bool:
        path = self._relative(place, name)
        if name.startswith("."):
            report.leave_out(path, "It is hidden.")
        elif not (Path(place) / name).is_symlink():
            return False
        elif path.partition("/")[0] in OWN_FOLDERS:
            report.fail(path, "It is a symbolic link and was not followed.")
        else:
            report.leave_out(path, "It is a symbolic link and was not followed.")
        return True

    def _relative(self, place: str, name: str) -> str:
        return (Path(place) / name).relative_to(self.root).as_posix()

    def read(self, path: str, max_bytes: int = MAX_ITEM_BYTES) -> bytes:
        descriptor = self._open(path)
        with os.fdopen(descriptor, "rb") as file:
            facts = os.fstat(descriptor)
            if not stat.S_ISREG(facts.st_mode):
                raise ValidationFailed("It is not a plain file.")
            if facts.st_size > max_bytes:
                raise ValidationFailed(
                    f"The file must be at most {max_bytes} bytes (got {facts.st_size})."
                )
            return file.read(max_bytes)

    def _open(self, path: str) -> int:
        """Open by descriptors, so that no folder on the way can be a link."""
        *folders, name = path.split("/")
        above = os.open(self.root, _FOLDER)
        try:
            for folder in folders:
                below = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
                os.close(above)
                above = below
            return os.open(
                name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=above
            )
        except OSError as error:
            linked = self._first_link(path)
            reason = (
                f"{linked} is a symbolic link and was not followed" if linked else error.strerror
            )
            raise ValidationFailed(f"It cannot be read: {reason}.") from error
        finally:
            os.close(above)

    def _first_link(self, path: str) -> str:
        parts = path.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        return next((place for place in above if (self.root / place).is_symlink()), "")

    def read_text(self, path: str, max_bytes: int = MAX_ITEM_BYTES) -> str:
        try:
            return self.read(path, max_bytes).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValidationFailed(f"It is not UTF-8 text (byte {error.start}).") from error

    def read_facts_beside(self, path: str) -> dict[str, Any]:
        """Return the metadata stored for a file below metadata/."""
        place = metadata_path(path)
        if not self.has(place):
            return {}
        try:
            facts = json.loads(self.read_text(place, MAX_FACTS_BYTES))
        except (ValueError, RecursionError) as error:
            raise ValidationFailed(f"{place} is not JSON: {error}") from error
        if not isinstance(facts, dict):
            raise ValidationFailed(f"{place} is not a JSON object.")
        return facts

    def has(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def write(self, path: str, content: bytes) -> bool:
        """Write a file atomically. A file that already has this content is left alone."""
        place = self.root / path
        self._refuse_linked_folders(place)
        if self._holds(place, content):
            return False
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            _write_beside(place, content)
        except OSError as error:
            raise ValidationFailed(f"It cannot be written: {error.strerror}.") from error
        return True

    def remove(self, path: str) -> bool:
        """Remove the file, and the folders that become empty."""
        place = self.root / path
        self._refuse_linked_folders(place)
        if not place.is_symlink() and not place.is_file():
            return False
        place.unlink()
        for folder in place.parents:
            if folder == self.root or any(folder.iterdir()):
                break
            folder.rmdir()
        return True

    def _refuse_linked_folders(self, place: Path) -> None:
        for folder in place.parents:
            if folder == self.root:
                return
            if folder.is_symlink():
                raise ValidationFailed(
                    f"{folder.name} is a symbolic link; nothing is written through it."
                )

    def _holds(self, place: Path, content: bytes) -> bool:
        if place.is_symlink() or not place.is_file() or place.stat().st_size != len(content):
            return False
        return place.read_bytes() == content


def _write_beside(place: Path, content: bytes) -> None:
    draft = place.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        draft.write_bytes(content)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)
