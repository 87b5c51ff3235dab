"""Read files and folders by path, and file:// URIs inside the configured roots."""

from typing import Any

from resources_app.addresses.targets import resource_target
from resources_app.addresses.uris import build_path
from resources_app.errors import NotFound, ValidationFailed
from resources_app.files import disk
from resources_app.history import revisions
from resources_app.history.etags import make_etag
from resources_app.models import Folder, Resource
from resources_app.querying.queries import DEFAULT_LIMIT, MAX_LIMIT, whole_number
from resources_app.reading.result import Reading, ReadRequest, computed, content_etag
from resources_app.reading.serializers import folder_json, resource_json
from resources_app.writing.edits import allowed_operations


def read_path(request: ReadRequest) -> Reading:
    """Read the content of a file, or list a folder."""
    path = request.uri.path
    resource = Resource.objects.visible_to(request.actor.user).live().filter(path=path).first()
    if resource:
        return _read_resource(request, resource)
    folder = Folder.objects.visible_to(request.actor.user).filter(path=path).first()
    if folder is None and len(request.uri.segments) > 1:
        raise NotFound(
            f"There is no file or folder {path!r} (or it is not visible to you).", path=path
        )
    if request.uri.version:
        raise NotFound("A folder has no versions.", path=path)
    return computed(request, list_folder(request, folder), subscribable=True)


def list_folder(request: ReadRequest, folder: Folder | None) -> dict[str, Any]:
    """List folders first, then files, each by name. The cursor is the last path shown."""
    limit = whole_number("limit", request.parameter("limit", str(DEFAULT_LIMIT)), 1, MAX_LIMIT)
    kind, _, after = request.parameter("cursor", "d:").partition(":")
    if kind not in {"d", "f"}:
        raise ValidationFailed(
            "cursor must be the next_cursor of an answer.",
            field="cursor",
            value=request.parameter("cursor"),
        )
    if folder is None:
        return {"results": [], "total": 0, "next_cursor": None}
    folders = Folder.objects.visible_to(request.actor.user).filter(parent=folder)
    resources = Resource.objects.visible_to(request.actor.user).live().filter(folder=folder)
    found: list[Folder | Resource] = []
    if kind == "d":
        found = list(folders.filter(path__gt=after).order_by("path")[: limit + 1])
    if len(found) <= limit:
        later = resources.filter(path__gt=after) if kind == "f" else resources
        found += later.order_by("path")[: limit + 1 - len(found)]
    shown = found[:limit]
    return {
        "results": [_entry(row) for row in shown],
        "total": folders.count() + resources.count(),
        "next_cursor": _cursor(shown[-1]) if len(found) > limit else None,
    }


def read_local_file(request: ReadRequest) -> Reading:
    """Read a file, or list a folder as its mcp:// URI does."""
    path = disk.folder_path(request.uri)
    folder = (
        Folder.objects.visible_to(request.actor.user).filter(path=path).first() if path else None
    )
    if folder:
        return computed(request, list_folder(request, folder))
    found = disk.read_file_uri(request.uri)
    contents: Any = found.text if found.text is not None else found.raw
    return Reading(
        request.given_uri, found.mime_type, contents, content_etag(found.raw), subscribable=False
    )


def _read_resource(request: ReadRequest, resource: Resource) -> Reading:
    version = request.uri.version or resource.version
    return Reading(
        uri=request.given_uri,
        mime_type=resource.mime_type,
        contents=_contents(resource, request.uri.version),
        etag=make_etag(resource.ref, version),
        version=version,
        operations=allowed_operations(
            resource_target(resource.path), is_text=resource.content is not None
        ),
        may_write=request.actor.may_write and not resource.root and request.uri.version is None,
    )


def _contents(resource: Resource, version: int | None) -> str | bytes:
    if version is not None and version != resource.version:
        text = revisions.document_at(resource.KIND, resource.pk, version).get("content")
        if text is None:
            raise NotFound("Only texts keep their earlier versions.", version=version)
        return str(text)
    if resource.content is not None:
        return resource.content
    return bytes(resource.blob) if resource.blob is not None else disk.read_mirrored(resource)


def _entry(row: Folder | Resource) -> dict[str, Any]:
    return folder_json(row, build_path(row.path)) if isinstance(row, Folder) else resource_json(row)


def _cursor(row: Folder | Resource) -> str:
    return f"{'d' if isinstance(row, Folder) else 'f'}:{row.path}"
