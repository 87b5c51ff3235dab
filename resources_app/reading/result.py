"""Define the request and the result of a reader."""

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from resources_app.addresses.targets import ARCHIVE, Target, visible_thing
from resources_app.addresses.uris import Uri, build
from resources_app.errors import NotFound, ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.models.base import Versioned
from resources_app.writing.results import size_of


@dataclass(frozen=True)
class ReadRequest:
    actor: Actor
    uri: Uri
    given_uri: str
    variables: dict[str, str]

    def parameter(self, name: str, default: str = "") -> str:
        """Return the single value of a parameter.

        A repeated parameter is rejected, since one value would be ignored.
        """
        values = [value for key, value in self.uri.query if key == name]
        if len(values) > 1:
            raise ValidationFailed(f"{name} can be given once.", field=name, value=values)
        return values[0] if values else default

    @property
    def collection(self) -> str:
        """Return the collection. archive/EPIC-0001/title reads like epics/EPIC-0001/title."""
        if not self.in_archive:
            return self.uri.segments[0]
        return "epics" if self.variables["id"].startswith("EPIC") else "tasks"

    def visible_item(self, target: Target) -> Versioned:
        item = visible_thing(self.actor.user, target)
        if self.in_archive and not item.archived_at:
            raise NotFound(
                f"{item.ref} is not archived.",
                suggestion=f"Read {build(self.collection, item.ref)} instead.",
            )
        return item

    @property
    def in_archive(self) -> bool:
        return self.uri.segments[0] == ARCHIVE


@dataclass(frozen=True)
class Reading:
    """Hold the result of a read.

    `contents` is text, JSON or bytes; the rest is what a caller needs to write back.
    """

    uri: str
    mime_type: str
    contents: Any
    etag: str
    version: int | None = None
    operations: tuple[str, ...] = ()
    may_write: bool = False
    subscribable: bool = True
    is_folder: bool = False

    @property
    def size(self) -> int:
        return len(self.contents) if isinstance(self.contents, bytes) else size_of(self.contents)

    @property
    def text(self) -> str:
        """Return the contents as MCP sends them. A field without a value is an empty text."""
        if isinstance(self.contents, str):
            return self.contents
        if self.contents is None and self.mime_type.startswith("text/"):
            return ""
        return json.dumps(self.contents, ensure_ascii=False)

    def metadata(self) -> dict[str, Any]:
        writable = self.may_write and bool(self.operations)
        return {
            "uri": self.uri,
            "mime_type": self.mime_type,
            "size": self.size,
            "etag": self.etag,
            "version": self.version,
            "capabilities": {
                "readable": True,
                "writable": writable,
                "subscribable": self.subscribable,
                "operations": list(self.operations) if writable else [],
            },
            "permissions": {"read": True, "write": writable, "delete": writable, "share": writable},
        }

    def as_json(self) -> dict[str, Any]:
        if isinstance(self.contents, bytes):
            return self.metadata() | {
                "contents": base64.b64encode(self.contents).decode(),
                "encoding": "base64",
            }
        return self.metadata() | {"contents": self.contents}


def content_etag(contents: Any) -> str:
    """Return an ETag for content without a version: collections and computed responses."""
    raw = contents if isinstance(contents, bytes) else json.dumps(contents, sort_keys=True).encode()
    return hashlib.blake2b(raw, digest_size=10).hexdigest()


def computed(
    request: ReadRequest, contents: Any, *, is_folder: bool = False, etag: str = ""
) -> Reading:
    """Return a reading of JSON. `etag` spares a digest of contents that versions describe."""
    return Reading(
        request.given_uri,
        "application/json",
        contents,
        etag or content_etag(contents),
        is_folder=is_folder,
    )
