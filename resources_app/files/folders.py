"""Validate resource paths and maintain the folder rows."""

from resources_app.addresses import uris
from resources_app.addresses.targets import AREAS, FILE_PARTS
from resources_app.errors import BacklogError, InvalidUri, PermissionDenied, ValidationFailed
from resources_app.identity.roles import Person
from resources_app.models import Folder, Resource

MAX_PATH = 1000
MAX_DEPTH = 30
# Leaves room for a version or a query.
MAX_URI = uris.MAX_LENGTH - 500


def check_path(path: object) -> str:
    """Validate a path. It must have a URI: paths that uris.py rejects cannot be stored."""
    if not isinstance(path, str) or path.partition("/")[0] not in AREAS or "/" not in path:
        raise _refused(path, f"it must start with {' or '.join(f'{area}/' for area in AREAS)}")
    if len(path) > MAX_PATH or path.count("/") > MAX_DEPTH:
        raise _refused(path, f"it may have {MAX_PATH} characters and {MAX_DEPTH} folders at most")
    try:
        address = str(uris.parse(uris.build_path(path)))
    except (InvalidUri, UnicodeEncodeError):
        raise _refused(
            path, "a part of it is empty, '.', '..', or has a backslash or control character"
        ) from None
    if len(address) > MAX_URI:
        raise _refused(path, f"its URI must be at most {MAX_URI} characters (got {len(address)})")
    return path


def ancestor_paths(path: str) -> list[str]:
    """Return the ancestor folders: resources/a/b.md → resources, resources/a."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def is_folder(user: Person, path: str) -> bool:
    return Folder.objects.visible_to(user).filter(path=path).exists()


def is_only_read(user: Person, path: str) -> bool:
    """Return whether the path is a folder, or the history or schema of a file."""
    file, _, part = path.rpartition("/")
    return is_folder(user, path) or (
        part in FILE_PARTS and Resource.objects.visible_to(user).live().filter(path=file).exists()
    )


def refuse_clash(user: Person, path: str, besides: int = 0) -> None:
    """Reject a file where a folder is, and a folder where a file is.

    Archived files do not count.
    """
    others = Resource.objects.live().exclude(pk=besides)
    seen = others.visible_to(user)
    if seen.below(path).exists():
        raise ValidationFailed(f"{path} is a folder.", field="path", value=path)
    if file := seen.filter(path__in=ancestor_paths(path)).first():
        raise ValidationFailed(
            f"{file.path} is a file, so nothing can lie below it.", field="path", value=path
        )
    if others.below(path).exists() or others.filter(path__in=ancestor_paths(path)).exists():
        raise reserved(path)


def reserved(path: str) -> BacklogError:
    """Return the error for a path used by something invisible to the caller.

    It does not disclose whether anything is there.
    """
    return PermissionDenied(
        f"You cannot store a file at {path}.",
        suggestion="Choose another path.",
        field="path",
        value=path,
    )


def claim(folder_path: str) -> list[Folder]:
    """Return a folder and its ancestors from the top, created where missing, with the innermost
    locked.

    A writer locks a folder before it adds or removes anything in it. Two writers therefore never
    create the same entry twice, and no folder vanishes under a new file. The ancestors need no
    lock: they are not empty while the innermost exists.
    """
    paths = [*ancestor_paths(folder_path), folder_path]
    locked = None
    while True:
        chain = sorted(Folder.objects.filter(path__in=paths), key=lambda folder: len(folder.path))
        if not chain:
            Folder.objects.get_or_create(path=paths[0])
        elif chain[-1].pk == locked:
            break
        else:
            locked = _lock(chain[-1].path)
    for path in paths[len(chain) :]:
        chain.append(Folder.objects.create(path=path, parent=chain[-1]))
    return chain


def claim_for(path: str) -> list[Folder]:
    """Claim the folders for a new file, and lock a folder of the same name that archived files may
    have left.
    """
    chain = claim(path.rpartition("/")[0])
    _lock(path)
    return chain


def _lock(folder_path: str) -> int | None:
    return (
        Folder.objects.select_for_update(no_key=True)
        .filter(path=folder_path)
        .values_list("pk", flat=True)
        .first()
    )


def settle(resource: Resource) -> None:
    """Update the folder rows after a path change."""
    folders, left = claim(resource.path.rpartition("/")[0]), resource.folder
    resource.folder = folders[-1]
    Resource.objects.filter(pk=resource.pk).update(folder=resource.folder)
    resource.ancestors.set(folders)
    prune(left)


def prune(folder: Folder | None) -> None:
    """Remove a folder and its ancestors while they are empty, counting archived files as
    content.
    """
    while folder:
        locked = Folder.objects.select_for_update().filter(pk=folder.pk).first()
        if locked is None or locked.resources.exists() or locked.subfolders.exists():
            return
        folder = locked.parent
        locked.delete()


def _refused(path: object, reason: str) -> BacklogError:
    return ValidationFailed(
        f"The path cannot be used: {reason}.", field="path", value=str(path)[:200]
    )
