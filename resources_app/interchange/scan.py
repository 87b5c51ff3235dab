"""Mirror the files of the configured roots as resources.

A hash detects changes; no link is followed.
"""

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone

from resources_app.errors import BacklogError, NotFound, ValidationFailed
from resources_app.files import folders
from resources_app.files.contents import facts_of
from resources_app.files.disk import FileReading, Mount, is_own_data, mounts, read_place
from resources_app.history.documents import uri_of
from resources_app.history.revisions import Document
from resources_app.identity.roles import system_actor
from resources_app.jobs.queue import RunningJob, job
from resources_app.jobs.time_slices import time_slices
from resources_app.models import Folder, Resource
from resources_app.writing import stored_files
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession
from resources_app.writing.write_path import write_transaction

# Names that start with a dot are skipped too: .git, .venv, .env …
IGNORED = frozenset({"node_modules", "__pycache__", "venv", "Thumbs.db"})
# Limits for reading ahead of the write transactions, to keep memory small.
AHEAD_FILES = 200
AHEAD_BYTES = 16_000_000
PROGRESS_EVERY = 50

Progress = Callable[[int, int, str], None]


@dataclass
class ScanReport:
    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class _Listing:
    """List the files of a root.

    The content of `unread` folders is unknown, so nothing below them counts as removed.
    """

    files: list[tuple[str, ...]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def scan(progress: Progress | None = None, forget: Collection[str] = ()) -> ScanReport:
    """Scan all roots.

    `forget` names roots that are no longer configured and whose files are to be archived.
    """
    report = ScanReport()
    _report_forgotten(report, forget)
    listings = [(mount, _list_files(mount, report)) for mount in mounts()]
    steps = _Steps(progress, sum(len(listing.files) for _, listing in listings))
    for mount, listing in listings:
        _Mirror(mount, report, steps).bring_up_to_date(listing)
    steps.tell("done")
    return report


@job("scan_resources")
def scan_resources(running: RunningJob) -> None:
    report = scan(running.progress)
    total = report.added + report.changed + report.unchanged
    note = (
        f"{report.added} added, {report.changed} changed, {report.removed} removed,"
        f" {len(report.skipped)} skipped"
    )
    running.progress(total, total, note)


class _Steps:
    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def step(self, path: str) -> None:
        self.done += 1
        if self.done % PROGRESS_EVERY == 0:
            self.tell(path)

    def tell(self, note: str) -> None:
        if self.progress:
            self.progress(self.done, self.total, note)


class _Changed(NamedTuple):
    """Hold a file that differs from its row, read and parsed."""

    path: str
    found: FileReading
    facts: Document


class _Mirror:
    """Update the rows of one root to match its files."""

    def __init__(self, mount: Mount, report: ScanReport, steps: _Steps) -> None:
        self.mount, self.report, self.steps = mount, report, steps
        rows = Resource.objects.live().filter(root=mount.name).values_list("path", "sha256")
        self.known: dict[str, str] = dict(rows)
        self.alone = not _others_at(mount).exists()
        self.chains: dict[str, list[Folder]] = {}

    def bring_up_to_date(self, listing: _Listing) -> None:
        """Archive removed files first: a file may have become a folder of the same name."""
        listed = {self.mount.path_of(parts) for parts in listing.files}
        kept = tuple(f"{path}/" for path in listing.unread)
        _archive(
            [path for path in self.known if path not in listed and not path.startswith(kept)],
            self.report,
        )
        refused: list[str] = []
        for ahead in _read_ahead(self._changed_files(listing, refused)):
            for part in time_slices(ahead):
                self._write(part)
            self.steps.tell(ahead[-1].path)
        _archive([path for path in refused if path in self.known], self.report)

    def _changed_files(self, listing: _Listing, refused: list[str]) -> Iterator[_Changed]:
        for parts in listing.files:
            path = self.mount.path_of(parts)
            self.steps.step(path)
            try:
                found = read_place(self.mount, parts)
            except NotFound:
                self.report.skipped.append((path, "cannot be opened, or has a second hard link"))
            except ValidationFailed as error:
                self.report.skipped.append((path, error.message))
                refused.append(path)
            else:
                if self.known.get(path) != found.sha256:
                    yield _Changed(path, found, facts_of(path, found.text or ""))
                else:
                    self.report.unchanged += 1

    def _write(self, part: Iterator[_Changed]) -> None:
        with write_transaction():
            session = WriteSession(system_actor("sync"))
            # Serializes concurrent scans.
            self.chains = {self.mount.prefix: folders.claim(self.mount.prefix)}
            for changed in part:
                self._mirror(session, *changed)

    def _mirror(
        self, session: WriteSession, path: str, found: FileReading, facts: Document
    ) -> None:
        row = Resource.objects.select_for_update(no_key=True).filter(path=path).first()
        if not self.alone and (reason := _occupied(path, row)):
            self.report.skipped.append((path, reason))
        elif row is None:
            stored_files.insert(
                session, path, self._chain(path), found, facts, root=self.mount.name
            )
            self.report.added += 1
        elif row.archived_at:
            stored_files.renew(session, row, found, facts, action="create", root=self.mount.name)
            self.report.added += 1
        elif (row.root, row.sha256) == (self.mount.name, found.sha256):
            self.report.unchanged += 1  # written by another scan a moment ago
        else:
            stored_files.renew(session, row, found, facts, action="update", root=self.mount.name)
            self.report.changed += 1

    def _chain(self, path: str) -> list[Folder]:
        folder = path.rpartition("/")[0]
        if folder not in self.chains:
            self.chains[folder] = folders.claim(folder)
        return self.chains[folder]


def _others_at(mount: Mount) -> QuerySet[Resource]:
    """Return the resources that could clash with a mirrored file: others at, inside or around the
    root's path.
    """
    around = [*folders.ancestor_paths(mount.prefix), mount.prefix]
    others = Resource.objects.live().exclude(root=mount.name)
    return others.filter(Q(path__startswith=f"{mount.prefix}/") | Q(path__in=around))


def _occupied(path: str, row: Resource | None) -> str:
    if row and not row.archived_at:
        return "" if row.root else "a stored resource has this path"
    try:
        folders.refuse_clash(system_actor("scan").user, path)
    except ValidationFailed as error:
        return error.message
    return ""


def _read_ahead(changed: Iterator[_Changed]) -> Iterator[list[_Changed]]:
    ahead: list[_Changed] = []
    size = 0
    for entry in changed:
        ahead.append(entry)
        size += entry.found.size
        if len(ahead) == AHEAD_FILES or size > AHEAD_BYTES:
            yield ahead
            ahead, size = [], 0
    if ahead:
        yield ahead


def _archive(paths: list[str], report: ScanReport) -> None:
    for part in time_slices(paths):
        with write_transaction():
            session = WriteSession(system_actor("sync"))
            for path in part:
                _archive_one(session, path, report)


def _archive_one(session: WriteSession, path: str, report: ScanReport) -> None:
    resource = Resource.objects.live().select_for_update(no_key=True).filter(path=path).first()
    if resource is not None:
        edit = Edit({"type": "archive"}, internal={"archived_at": timezone.now().isoformat()})
        session.save(resource, edit, uri=uri_of(resource), action="archive")
        report.removed += 1


def _report_forgotten(report: ScanReport, forget: Collection[str]) -> None:
    """Archive or report the rows of roots that are no longer configured.

    By default they stay, in case the setting was removed by mistake.
    """
    names = [mount.name for mount in mounts()]
    left = Resource.objects.live().exclude(root="").exclude(root__in=names)
    for name in sorted(set(left.values_list("root", flat=True))):
        if name in forget:
            _archive(list(left.filter(root=name).values_list("path", flat=True)), report)
        else:
            reason = (
                f"is not configured any more; 'scan_resources --forget {name}' archives its files"
            )
            report.skipped.append((name, reason))


# Directory walk


def _list_files(mount: Mount, report: ScanReport) -> _Listing:
    listing = _Listing()
    others = {other.prefix for other in mounts() if other != mount}
    _Walk(mount, listing, report, others).enter(None, str(mount.folder), ())
    return listing


@dataclass
class _Walk:
    """Descend by descriptors, so that no folder on the way can be swapped for a link."""

    mount: Mount
    listing: _Listing
    report: ScanReport
    others: set[str]

    def enter(self, parent: int | None, name: str, parts: tuple[str, ...]) -> None:
        if is_own_data(self.mount, parts):
            return
        flags = (
            os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if parent is None else os.O_NOFOLLOW)
        )
        try:
            descriptor = os.open(name, flags, dir_fd=parent)
        except OSError as error:
            self._unread(parts, error)
            return
        try:
            self._look_through(descriptor, parts)
        except OSError as error:
            self._unread(parts, error)
        finally:
            os.close(descriptor)

    def _look_through(self, descriptor: int, parts: tuple[str, ...]) -> None:
        with os.scandir(descriptor) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if not entry.name.startswith(".") and entry.name not in IGNORED:
                    self._look_at(descriptor, entry, (*parts, entry.name))

    def _look_at(self, descriptor: int, entry: os.DirEntry[str], parts: tuple[str, ...]) -> None:
        path = self.mount.path_of(parts)
        if path in self.others:
            self._skip(path, "another root is shown here")
        elif problem := _problem(entry, path):
            self._skip(path, problem)
        elif entry.is_dir(follow_symlinks=False):
            self.enter(descriptor, entry.name, parts)
        else:
            self.listing.files.append(parts)

    def _skip(self, path: str, reason: str) -> None:
        self.report.skipped.append((path.encode(errors="backslashreplace").decode(), reason))

    def _unread(self, parts: tuple[str, ...], error: OSError) -> None:
        path = self.mount.path_of(parts)
        self._skip(path, f"cannot be read ({error.strerror}); what was mirrored from it stays")
        self.listing.unread.append(path)


def _problem(entry: os.DirEntry[str], path: str) -> str:
    if entry.is_symlink():
        return "is a symbolic link"
    if not entry.is_dir(follow_symlinks=False) and not entry.is_file(follow_symlinks=False):
        return "is not a regular file"
    try:
        folders.check_path(path)
    except BacklogError as error:
        return error.message
    return ""
