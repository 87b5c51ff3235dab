"""Read tasks and epics: whole, by field, by element, as a file, and their schema."""

from dataclasses import replace
from typing import Any

from resources_app.addresses.hidden_refs import Mask
from resources_app.addresses.targets import Target, field_target, item_target
from resources_app.addresses.uris import build
from resources_app.fields.declarations import FIELDS, Field
from resources_app.history import revisions
from resources_app.history.documents import document_of
from resources_app.history.etags import make_etag
from resources_app.history.revisions import Document
from resources_app.models import Change, Epic, Task
from resources_app.models.base import Versioned
from resources_app.reading.markdown import item_frontmatter, item_markdown
from resources_app.reading.result import Reading, ReadRequest, computed
from resources_app.reading.serializers import item_json_at
from resources_app.writing.edits import allowed_operations
from resources_app.writing.results import mime_type_of, value_at


def read_item(request: ReadRequest) -> Reading:
    target = _item_target(request)
    item = _item(request, target)
    version = request.uri.version or item.version
    shown = item_json_at(item, _document_as_read(request, item), version)
    return _reading(request, item, target, shown, version)


def read_field(request: ReadRequest) -> Reading:
    target = field_target(request.collection, *_names(request))
    item = _item(request, target)
    document, version = _document_as_read(request, item), request.uri.version or item.version
    if target.field and not target.field.writable:
        return _reading(
            request, item, target, item_json_at(item, document, version)[target.field.name], version
        )
    return _reading(request, item, target, value_at(target, document), version)


def read_file(request: ReadRequest) -> Reading:
    target = _item_target(request)
    item = _item(request, target)
    version = request.uri.version or item.version
    text = item_markdown(item, _document_as_read(request, item))
    return Reading(
        request.given_uri, "text/markdown", text, make_etag(item.ref, version, "file"), version
    )


def read_metadata(request: ReadRequest) -> Reading:
    target = _item_target(request)
    item = _item(request, target)
    version = request.uri.version or item.version
    facts = item_frontmatter(item, _document_as_read(request, item))
    return Reading(
        request.given_uri,
        "application/json",
        facts,
        make_etag(item.ref, version, "metadata"),
        version,
    )


def read_schema(request: ReadRequest) -> Reading:
    """Describe what this caller may do, consistent with reading the item and each of its fields."""
    target = _item_target(request)
    item = _item(request, target)
    base = build(request.uri.segments[0], item.ref)
    may_write = request.actor.may_write and not item.archived_at
    schema = {
        "uri": base,
        "type": "object",
        "operations": list(allowed_operations(target)) if may_write else [],
        "properties": {
            declared.name: property_json(
                declared,
                f"{base}/{declared.name}",
                allowed_operations(replace(target, field=declared)) if may_write else (),
            )
            for declared in FIELDS[target.kind].values()
        },
    }
    return computed(request, schema)


def _names(request: ReadRequest) -> tuple[str, str, str | None]:
    return request.variables["id"], request.variables["field"], request.variables.get("index")


def _item_target(request: ReadRequest) -> Target:
    return item_target(request.collection, request.variables["id"])


def _item(request: ReadRequest, target: Target) -> Task | Epic:
    item = request.visible_item(target)
    assert isinstance(item, Task | Epic)  # noqa: S101  guaranteed by the target's kind
    if request.uri.version and request.uri.version != item.version:
        item.updated_at = revisions.moment_of(item, request.uri.version)
    return item


def _document_as_read(request: ReadRequest, thing: Versioned) -> Document:
    version = request.uri.version
    document = (
        document_of(thing)
        if version is None
        else revisions.document_at(thing.KIND, thing.pk, version)
    )
    return Mask(request.actor.user).shown(document)


def _reading(
    request: ReadRequest, thing: Versioned, target: Target, contents: Any, version: int
) -> Reading:
    return Reading(
        uri=request.given_uri,
        mime_type=mime_type_of(thing, target),
        contents=contents,
        etag=make_etag(thing.ref, _etag_version(thing, target, version), target.etag_field),
        version=version,
        operations=allowed_operations(target),
        may_write=request.actor.may_write and not thing.archived_at and request.uri.version is None,
    )


def _etag_version(thing: Versioned, target: Target, version: int) -> int:
    """Return the version in which this field last changed, as of the version being read."""
    if target.field is None or not target.field.writable:
        return version
    current: int = thing.field_versions.get(target.etag_field, 1)
    if current <= version:
        return current
    earlier = Change.objects.filter(
        kind=thing.KIND, object_id=thing.pk, version__lte=version
    ).order_by("-version")
    for number, fields in earlier.values_list("version", "fields").iterator(chunk_size=100):
        if target.etag_field in fields:
            return int(number)
    return 1


def property_json(declared: Field, uri: str, operations: tuple[str, ...]) -> dict[str, Any]:
    """Describe a field in a schema: its type and what the caller may do at the URI."""
    described: dict[str, Any] = {
        "uri": uri,
        "type": declared.mime_type,
        "writable": bool(operations),
        "operations": list(operations),
        "description": declared.description,
    }
    if declared.choices:
        described["enum"] = list(declared.choices)
    limits = {
        "maxLength": declared.max_length,
        "minimum": declared.minimum,
        "maximum": declared.maximum,
    }
    return described | {name: limit for name, limit in limits.items() if limit is not None}
