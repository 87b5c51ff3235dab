"""Read files and folders by path, and file:// URIs inside the configured roots."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from resources_app.addresses.targets import ARCHIVE, file_path, resource_target
from resources_app.addresses.uris import build_path
from resources_app.editing.operations import TEXT_OPERATIONS
from resources_app.errors import NotFound, ValidationFailed
from resources_app.fields.declarations import FIELDS
from resources_app.files import disk
from resources_app.history import revisions
from resources_app.history.etags import make_etag
from resources_app.models import Folder, Resource
from resources_app.models.querysets import ResourceQuerySet
from resources_app.querying.queries import DEFAULT_LIMIT, MAX_LIMIT, whole_number
from resources_app.reading.collections import list_versions
from resources_app.reading.items import property_json
from resources_app.reading.result import Reading, ReadRequest, computed, content_etag
from resources_app.reading.serializers import folder_json, resource_json
from resources_app.vocabulary import Kind
from resources_app.writing.edits import allowed_operations


def read_path(request: ReadRequest) -> Reading:
    """Read the content of a file, or list a folder."""
    reading = _read_named(request)
    if reading is None:
        raise _absent(file_path(request.uri))
    return reading


def read_versions(request: ReadRequest) -> Reading:
    """List the versions of a file, unless something is itself called `versions`."""
    return _read_named(request) or _read_part(request, _versions)


def read_schema(request: ReadRequest) -> Reading:
    """Describe what this caller may write to a file, unless something is itself called `schema`."""
    named = _read_named(request)
    return named or replace(_read_part(request, _schema), subscribable=False)


def read_archive(request: ReadRequest) -> Reading:
    """List the archived files by path. The cursor is the last path shown."""
    rows = _files(request).filter(path__startswith=f"{file_path(request.uri)}/")
    limit, after = _limit(request), request.parameter("cursor")
    page = rows.filter(path__gt=after).order_by("path").defer("content", "blob")
    found = list(page[: limit + 1])
    contents = {
        "results": [resource_json(one) | {"uri": _archived_uri(one)} for one in found[:limit]],
        "total": rows.count(),
        "next_cursor": found[limit - 1].path if len(found) > limit else None,
    }
    return computed(request, contents)


def _read_named(request: ReadRequest) -> Reading | None:
    """Read the file or folder whose path is the whole path of the URI."""
    path = file_path(request.uri)
    resource = _files(request).filter(path=path).first()
    if resource:
        return _read_resource(request, resource)
    return None if request.in_archive else _read_folder(request, path)


def _read_folder(request: ReadRequest, path: str) -> Reading | None:
    folder = Folder.objects.visible_to(request.actor.user).filter(path=path).first()
    if folder is None and len(request.uri.segments) > 1:
        return None
    if request.uri.version:
        raise NotFound("A folder has no versions.", path=path)
    return computed(request, list_folder(request, folder), is_folder=True)


def _read_part(
    request: ReadRequest, describe: Callable[[ReadRequest, Resource], dict[str, Any]]
) -> Reading:
    """Read what is below the path of a file. It has no versions."""
    path = file_path(request.uri).rpartition("/")[0]
    resource = _files(request).filter(path=path).first()
    if resource is None:
        raise _absent(file_path(request.uri))
    if request.uri.version:
        raise NotFound("The versions and the schema of a file have no versions.", path=path)
    return computed(request, describe(request, resource))


def _versions(request: ReadRequest, resource: Resource) -> dict[str, Any]:
    target, cursor = resource_target(resource.path), request.parameter("cursor")
    return list_versions(
        request.actor.user, target, cursor, request.parameter("limit", str(DEFAULT_LIMIT))
    )


def _schema(request: ReadRequest, resource: Resource) -> dict[str, Any]:
    """Describe the fields of a file. They are written at the address of the file itself."""
    for name, value in request.uri.query:
        raise ValidationFailed(
            f"Unknown parameter {name!r}.", field=name, value=value, allowed_values=[]
        )
    uri = _archived_uri(resource) if request.in_archive else build_path(resource.path)
    may_write, is_text = _may_write(request, resource), resource.is_text
    whole = allowed_operations(resource_target(resource.path), is_text=is_text)
    of_fields = tuple(name for name in whole if name not in TEXT_OPERATIONS)
    operations = {"content": whole if is_text else ()}
    return {
        "uri": uri,
        "type": resource.mime_type,
        "operations": list(whole) if may_write else [],
        "properties": {
            field.name: property_json(
                field, uri, operations.get(field.name, of_fields) if may_write else ()
            )
            for field in FIELDS[Kind.RESOURCE].values()
        },
    }


def list_folder(request: ReadRequest, folder: Folder | None) -> dict[str, Any]:
    """List folders first, then files, each by name. The cursor is the last path shown."""
    limit = _limit(request)
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
        return computed(request, list_folder(request, folder), is_folder=True)
    found = disk.read_file_uri(request.uri)
    _refuse_hidden(request, found)
    contents: Any = found.text if found.text is not None else found.raw
    return Reading(request.given_uri, found.mime_type, contents, content_etag(found.raw))


def _refuse_hidden(request: ReadRequest, found: disk.FileReading) -> None:
    """Refuse a file that is mirrored but hidden from the caller as if it were absent."""
    rows = Resource.objects.filter(path=found.mirrored_path)
    if rows.exists() and not rows.visible_to(request.actor.user).exists():
        raise disk.absent(request.uri.path)


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
        may_write=_may_write(request, resource) and request.uri.version is None,
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


def _files(request: ReadRequest) -> ResourceQuerySet:
    rows = Resource.objects.visible_to(request.actor.user)
    return rows.archived() if request.in_archive else rows.live()


def _may_write(request: ReadRequest, resource: Resource) -> bool:
    return request.actor.may_write and not resource.root and not resource.archived_at


def _archived_uri(resource: Resource) -> str:
    return build_path(f"{ARCHIVE}/{resource.path}")


def _limit(request: ReadRequest) -> int:
    return whole_number("limit", request.parameter("limit", str(DEFAULT_LIMIT)), 1, MAX_LIMIT)


def _absent(path: str) -> NotFound:
    return NotFound(
        f"There is no file or folder {path!r} (or it is not visible to you).", path=path
    )
