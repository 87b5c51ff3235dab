"""Files on disk: the configured roots, and opening a file in one of them so that nothing outside is ever reached."""

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
# Not blocking: opening a fifo must not wait for its writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class Mount:
    """A configured root: the folder on disk and where its files appear. `docs` appears as resources/docs."""

    name: str
    folder: Path

    @property
    def prefix(self) -> str:
        return self.name if self.name.partition("/")[0] in AREAS else f"{AREAS[0]}/{self.name}"

    def path_of(self, parts: Sequence[str]) -> str:
        return "/".join([self.prefix, *parts])


@dataclass(frozen=True)
class FileReading(contents.Contents):
    """A file as it was read; `path` is relative to its root."""

    root: str
    path: str


Place = tuple[Mount, tuple[str, ...]]


def mounts() -> list[Mount]:
    found = [Mount(name, Path(folder)) for name, folder in settings.RESOURCE_ROOTS.items()]
    if len({mount.prefix for mount in found}) < len(found):
        raise ImproperlyConfigured("BACKLOG_RESOURCE_ROOTS shows two folders at the same place.")
    if any(len(mount.name) > MAX_NAME for mount in found):
        raise ImproperlyConfigured(f"A name in BACKLOG_RESOURCE_ROOTS is longer than {MAX_NAME} characters.")
    return found


def mount_of(path: str) -> Place | None:
    """The root a path like resources/docs/a.md lies in; of nested roots the inner one."""
    inside = [mount for mount in mounts() if path == mount.prefix or path.startswith(f"{mount.prefix}/")]
    if not inside:
        return None
    mount = max(inside, key=lambda mount: len(mount.prefix))
    return mount, tuple(path[len(mount.prefix) :].split("/")[1:])


def locate(path: str) -> Place | None:
    """The root that an absolute path really lies in. Links are resolved here; opening then follows none."""
    try:
        real = Path(os.path.realpath(path))
        roots = [(Path(os.path.realpath(mount.folder)), mount) for mount in mounts()]
    except OSError:  # a link that vanished while it was followed
        return None
    around = [(folder, mount) for folder, mount in roots if real != folder and real.is_relative_to(folder)]
    if not around:
        return None
    folder, mount = max(around, key=lambda pair: len(pair[0].parts))
    return mount, real.relative_to(folder).parts


def read_file_uri(uri: Uri) -> FileReading:
    """file:///absolute/path, if it really lies inside a root. Outside, absent and unreadable are the same answer."""
    place = locate("/" + uri.path) if uri.segments else None
    if place is None:
        raise _absent(uri.path)
    try:
        return read_place(*place)
    except NotFound:
        raise _absent(uri.path) from None


def folder_path(uri: Uri) -> str | None:
    """Return where the folder of a file URI appears, resources/docs/…, or None for what is no folder of a root."""
    real = os.path.realpath("/" + uri.path)
    roots = [mount for mount in mounts() if os.path.realpath(mount.folder) == real]
    place = (roots[0], ()) if roots else locate(real)
    if place is None or is_own_data(*place) or not Path(real).is_dir():
        return None
    path = place[0].path_of(place[1])
    return path if mount_of(path) == place else None


def read_mirrored(resource: Resource) -> bytes:
    """The bytes of a mirrored file, which stay on disk when they are not text."""
    place = mount_of(resource.path)
    if place is None or place[0].name != resource.root:
        raise NotFound(
            "The folder this file is mirrored from is not configured.", suggestion="Ask an admin.", path=resource.path
        )
    return read_place(*place).raw


def local_path(uri: Uri) -> Path | None:
    """Where a file or folder of a root lies on this machine; None for what is not there, or is a link out of it."""
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
    """The backlog's own folder holds its keys and its database: a root around it does not show it."""
    root, own = Path(os.path.realpath(mount.folder)), Path(os.path.realpath(settings.DATA_DIR))
    return own.is_relative_to(root) and root.joinpath(*parts).is_relative_to(own)


def read_place(mount: Mount, parts: Sequence[str]) -> FileReading:
    path = "/".join(parts)
    if is_own_data(mount, parts):
        raise _absent(path)
    with opened_inside(mount.folder, parts) as descriptor:
        found = read_regular(descriptor, parts[-1])
    return FileReading(found.raw, found.mime_type, found.text, mount.name, path)


@contextmanager
def opened_inside(root: Path, parts: Sequence[str]) -> Iterator[int]:
    descriptor = open_inside(root, parts)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_inside(root: Path, parts: Sequence[str]) -> int:
    """A descriptor of the file, reached component by component from the root, following no link on the way.

    Checking a path and then opening it leaves a moment in which somebody can swap the file for a link; this does not.
    """
    if not parts or any(part in {"", ".", ".."} or "/" in part or "\x00" in part for part in parts):
        raise _absent("/".join(parts))
    folder = -1
    try:
        folder = os.open(root, _FOLDER)
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    except (OSError, UnicodeEncodeError):
        raise _absent("/".join(parts)) from None
    finally:
        if folder >= 0:
            os.close(folder)


def read_regular(descriptor: int, name: str) -> contents.Contents:
    """All bytes of a regular file with one name only: a second hard link could be the name of a file outside."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        raise _absent(name)
    if status.st_size > contents.MAX_BINARY_BYTES:
        raise contents.too_large(contents.MAX_BINARY_BYTES)
    # The file may grow while it is read.
    found = contents.examine(name, _read_at_most(descriptor, contents.MAX_BINARY_BYTES + 1))
    contents.refuse_too_large(found)
    return found


def _read_at_most(descriptor: int, limit: int) -> bytes:
    chunks, size = [], 0
    while size < limit and (chunk := os.read(descriptor, min(1 << 20, limit - size))):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def _absent(path: str) -> NotFound:
    return NotFound("There is no such file in a configured folder.", path=path)
