"""Read files in the configured roots without ever reaching anything outside them."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from resources_app.addresses.targets import AREAS
from resources_app.addresses.uris import SERVER, Uri
from resources_app.errors import NotFound
from resources_app.files import contents
from resources_app.models import Resource

MAX_NAME = 100

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Non-blocking: opening a FIFO must not wait for its writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Mount:
    """Represent a configured root: the folder on disk and its path here.

    `docs` appears as resources/docs.
    """

    name: str
    folder: Path

    @property
    def prefix(self) -> str:
        return self.name if self.name.partition("/")[0] in AREAS else f"{AREAS[0]}/{self.name}"

    def path_of(self, parts: Sequence[str]) -> str:
        return "/".join([self.prefix, *parts])


@dataclass(frozen=True)
class FileReading(contents.Contents):
    """Hold a file as read; `path` is relative to its root, `mirrored_path` is its path here."""

    root: str
    path: str
    mirrored_path: str


Place = tuple[Mount, tuple[str, ...]]


def mounts() -> list[Mount]:
    found = [Mount(name, Path(folder)) for name, folder in settings.RESOURCE_ROOTS.items()]
    if len({mount.prefix for mount in found}) < len(found):
        raise ImproperlyConfigured("BACKLOG_RESOURCE_ROOTS shows two folders at the same place.")
    if any(len(mount.name) > MAX_NAME for mount in found):
        raise ImproperlyConfigured(
            f"A name in BACKLOG_RESOURCE_ROOTS is longer than {MAX_NAME} characters."
        )
    return found


def mount_of(path: str) -> Place | None:
    """Return the root that contains a path like resources/docs/a.md.

    Of nested roots, the inner one wins.
    """
    inside = [
        mount for mount in mounts() if path == mount.prefix or path.startswith(f"{mount.prefix}/")
    ]
    if not inside:
        return None
    mount = max(inside, key=lambda mount: len(mount.prefix))
    return mount, tuple(path[len(mount.prefix) :].split("/")[1:])


def locate(path: str) -> Place | None:
    """Return the root that contains an absolute path.

    Links are resolved here; opening then follows none.
    """
    try:
        real = Path(os.path.realpath(path))
        roots = [(Path(os.path.realpath(mount.folder)), mount) for mount in mounts()]
    except OSError:  # a link vanished while it was followed
        return None
    around = [
        (folder, mount) for folder, mount in roots if real != folder and real.is_relative_to(folder)
    ]
    if not around:
        return None
    folder, mount = max(around, key=lambda pair: len(pair[0].parts))
    return mount, real.relative_to(folder).parts


def read_file_uri(uri: Uri) -> FileReading:
    """Read file:///absolute/path if it lies inside a root.

    Outside, absent and unreadable raise the same error.
    """
    place = locate("/" + uri.path) if uri.segments else None
    if place is None:
        raise absent(uri.path)
    try:
        return read_place(*place)
    except NotFound:
        raise absent(uri.path) from None


def folder_path(uri: Uri) -> str | None:
    """Return the path at which the folder of a file URI appears, resources/docs/…, or None if it is
    not in a root.
    """
    real = os.path.realpath("/" + uri.path)
    roots = [mount for mount in mounts() if os.path.realpath(mount.folder) == real]
    place = (roots[0], ()) if roots else locate(real)
    if place is None or is_own_data(*place) or not Path(real).is_dir():
        return None
    path = place[0].path_of(place[1])
    return path if mount_of(path) == place else None


def read_mirrored(resource: Resource) -> bytes:
    """Return the bytes of a mirrored file. Binary content stays on disk."""
    place = mount_of(resource.path)
    if place is None or place[0].name != resource.root:
        raise NotFound(
            "The folder this file is mirrored from is not configured.",
            suggestion="Ask an admin.",
            path=resource.path,
        )
    return read_place(*place).raw


def local_path(uri: Uri) -> Path | None:
    """Return the path of a root's file or folder on this machine, or None if it is absent or a link
    to the outside.
    """
    if uri.version or uri.query:
        return None
    if uri.scheme == "file":
        place = locate("/" + uri.path)
    else:
        place = mount_of(uri.path) if (uri.scheme, uri.authority) == ("mcp", SERVER) else None
    if place is None or is_own_data(*place):
        return None
    path = place[0].folder.joinpath(*place[1])
    return path if path.exists() and (not place[1] or locate(str(path))) else None


def is_own_data(mount: Mount, parts: Sequence[str]) -> bool:
    """Return whether the path is in the data folder.

    That folder holds the keys and the database, and a root around it must not expose it.
    """
    root, own = Path(os.path.realpath(mount.folder)), Path(os.path.realpath(settings.DATA_DIR))
    return own.is_relative_to(root) and root.joinpath(*parts).is_relative_to(own)


def read_place(mount: Mount, parts: Sequence[str]) -> FileReading:
    path = "/".join(parts)
    if is_own_data(mount, parts):
        raise absent(path)
    with opened_inside(mount.folder, parts) as descriptor:
        found = read_regular(descriptor, parts[-1])
    return FileReading(
        found.raw, found.mime_type, found.text, mount.name, path, mount.path_of(parts)
    )


@contextmanager
def opened_inside(root: Path, parts: Sequence[str]) -> Iterator[int]:
    descriptor = open_inside(root, parts)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_inside(root: Path, parts: Sequence[str]) -> int:
    """Open the file component by component from the root, following no links, and return its
    descriptor.

    Checking a path and then opening it would leave a moment in which the file can be swapped for a
    link.
    """
    if not parts or any(part in {"", ".", ".."} or "/" in part or "\x00" in part for part in parts):
        raise absent("/".join(parts))
    folder = -1
    try:
        folder = os.open(root, _FOLDER)
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    except (OSError, UnicodeEncodeError):
        raise absent("/".join(parts)) from None
    finally:
        if folder >= 0:
            os.close(folder)


def read_regular(descriptor: int, name: str) -> contents.Contents:
    """Read a regular file with exactly one hard link.

    A second link could belong to a file outside the root.
    """
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise absent(name)
    if status.st_size > contents.MAX_BINARY_BYTES:
        raise contents.too_large(contents.MAX_BINARY_BYTES)
    # The file may grow while it is being read.
    found = contents.examine(name, _read_at_most(descriptor, contents.MAX_BINARY_BYTES + 1))
    contents.refuse_too_large(found)
    return found


def _read_at_most(descriptor: int, limit: int) -> bytes:
    chunks, size = [], 0
    while size < limit and (chunk := os.read(descriptor, min(1 << 20, limit - size))):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def absent(path: str) -> NotFound:
    return NotFound("There is no such file in a configured folder.", path=path)
