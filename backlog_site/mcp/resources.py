"""Serve resources/list, templates/list, read and completion, and our extension: resources/write,
write_batch, schema, list_versions.
"""

import base64
from typing import Any
from urllib.parse import quote

import mcp.types as protocol
from mcp.server import Server
from mcp.server.context import ServerRequestContext

from backlog_site.mcp.context import current_actor
from backlog_site.mcp.tools import opened
from backlog_site.mcp.toolset import checked_arguments
from backlog_site.serving.database_threads import in_thread
from resources_app.addresses import uris
from resources_app.identity.roles import Actor
from resources_app.reading import catalogue
from resources_app.reading.by_address import read
from resources_app.reading.collections import list_versions
from resources_app.reading.registry import REGISTRY, target_of
from resources_app.reading.result import Reading
from resources_app.writing import batches, write_path

# docs/rfc-writable-resources.md
EXTENSION = "io.backlog/writable-resources"
EXTENSION_METHODS = (
    "resources/write",
    "resources/write_batch",
    "resources/schema",
    "resources/list_versions",
)


def install(server: Server[Any]) -> None:
    server.extensions[EXTENSION] = {"methods": list(EXTENSION_METHODS)}
    add = server.add_request_handler
    add("resources/list", protocol.PaginatedRequestParams, list_resources)
    add("resources/templates/list", protocol.PaginatedRequestParams, list_templates)
    add("resources/read", ReadParams, read_resource)
    add("completion/complete", protocol.CompleteRequestParams, complete)
    add("resources/write", Arguments, write)
    add("resources/write_batch", Arguments, write_batch)
    add("resources/schema", UriParams, schema)
    add("resources/list_versions", VersionsParams, versions)


class Arguments(protocol.RequestParams):
    """Accept any arguments; the corresponding tool validates them."""

    model_config = {"extra": "allow"}

    def checked_for(self, tool: str) -> dict[str, Any]:
        return checked_arguments(tool, self.model_extra or {})


class UriParams(protocol.RequestParams):
    uri: str


class ReadParams(protocol.ReadResourceRequestParams):
    """Add our `version` parameter, which reads the address at that version, as `?version=` in the
    URI does.
    """

    version: Any = None

    def versioned_uri(self) -> str:
        if self.version is None:
            return self.uri
        separator = "&" if "?" in self.uri else "?"
        return f"{self.uri}{separator}version={quote(str(self.version), safe='')}"


class VersionsParams(UriParams):
    cursor: str = ""
    limit: int = 50


class ExtensionResult(protocol.Result):
    """Return the result of an extension method, equal to that of its REST counterpart."""

    model_config = {"extra": "allow"}


async def list_resources(
    _ctx: ServerRequestContext, params: protocol.PaginatedRequestParams | None
) -> protocol.ListResourcesResult:
    rows, following = await in_thread(
        catalogue.list_catalogue, current_actor(), params.cursor if params else None
    )
    return protocol.ListResourcesResult(
        resources=[_listed(row) for row in rows], next_cursor=following
    )


def _listed(row: dict[str, Any]) -> protocol.Resource:
    given = row.get("annotations", {}) | (
        {"last_modified": row["updated_at"]} if "updated_at" in row else {}
    )
    return protocol.Resource(
        uri=row["uri"],
        name=row["name"],
        title=row["title"],
        description=row["description"] or None,
        mime_type=row["mime_type"],
        size=row.get("size"),
        annotations=protocol.Annotations(**given) if given else None,
        _meta=row.get("meta"),
    )


async def list_templates(
    _ctx: ServerRequestContext, _params: protocol.PaginatedRequestParams | None
) -> protocol.ListResourceTemplatesResult:
    return protocol.ListResourceTemplatesResult(
        resource_templates=[
            protocol.ResourceTemplate(
                uri_template=entry.pattern,
                name=entry.name,
                title=entry.name.replace("_", " "),
                description=entry.description,
                mime_type=None if entry.mime_type == "*/*" else entry.mime_type,
            )
            for entry in REGISTRY
            if entry.is_template
        ]
    )


async def read_resource(
    _ctx: ServerRequestContext, params: ReadParams
) -> protocol.ReadResourceResult:
    reading = await in_thread(read, current_actor(), params.versioned_uri())
    return protocol.ReadResourceResult(contents=[_contents(reading)])


def _contents(reading: Reading) -> protocol.TextResourceContents | protocol.BlobResourceContents:
    contents = reading.contents
    if isinstance(contents, bytes):
        blob = base64.b64encode(contents).decode()
        return protocol.BlobResourceContents(
            uri=reading.uri, mime_type=reading.mime_type, blob=blob, _meta=reading.metadata()
        )
    return protocol.TextResourceContents(
        uri=reading.uri, mime_type=reading.mime_type, text=reading.text, _meta=reading.metadata()
    )


async def complete(
    _ctx: ServerRequestContext, params: protocol.CompleteRequestParams
) -> protocol.CompleteResult:
    pattern = (
        params.ref.uri
        if isinstance(params.ref, protocol.ResourceTemplateReference)
        else params.ref.name
    )
    name, value = params.argument.name, params.argument.value
    values = await in_thread(catalogue.complete, current_actor(), name, value, pattern)
    more = len(values) == catalogue.MAX_COMPLETIONS
    return protocol.CompleteResult(completion=protocol.Completion(values=values, has_more=more))


async def write(_ctx: ServerRequestContext, params: Arguments) -> ExtensionResult:
    return ExtensionResult(
        **await in_thread(write_path.write, current_actor(), **params.checked_for("write_resource"))
    )


async def write_batch(_ctx: ServerRequestContext, params: Arguments) -> ExtensionResult:
    given = params.checked_for("write_resource_batch")
    operations = opened(given.pop("operations"))
    return ExtensionResult(
        **await in_thread(batches.write_batch, current_actor(), operations, **given)
    )


async def schema(_ctx: ServerRequestContext, params: UriParams) -> ExtensionResult:
    reading = await in_thread(read, current_actor(), f"{params.uri}/schema")
    return ExtensionResult(**reading.contents)


async def versions(_ctx: ServerRequestContext, params: VersionsParams) -> ExtensionResult:
    return ExtensionResult(**await in_thread(_versions, current_actor(), params))


def _versions(actor: Actor, params: VersionsParams) -> dict[str, Any]:
    return list_versions(
        actor.user, target_of(uris.parse(params.uri)), params.cursor, str(params.limit)
    )
