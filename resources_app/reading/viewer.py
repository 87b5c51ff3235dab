"""Format a reading for the viewer's split pane (GET /mcp/resource)."""

import base64
import json
from pathlib import PurePosixPath
from typing import Any

from resources_app.addresses import uris
from resources_app.files.disk import locate, mount_of
from resources_app.files.frontmatter import parse
from resources_app.reading.result import Reading

_EXTENSIONS = {"application/json": "json", "text/markdown": "md", "text/plain": "txt"}


def viewer_json(reading: Reading) -> dict[str, Any]:
    """Return the viewer's JSON.

    `path` is relative to its root, so that paths of this machine are not disclosed.
    """
    path = _path(reading.uri)
    content, frontmatter = _content(reading)
    return {
        "content": content,
        "frontmatter": frontmatter,
        "type": reading.mime_type,
        "path": path,
        "uri": reading.uri,
        "ext": PurePosixPath(path).suffix.lstrip(".").lower()
        or _EXTENSIONS.get(reading.mime_type, "txt"),
    }


def _content(reading: Reading) -> tuple[str, dict[str, Any]]:
    if isinstance(reading.contents, bytes):
        return base64.b64encode(reading.contents).decode(), {}
    if not isinstance(reading.contents, str):
        return json.dumps(reading.contents, ensure_ascii=False, indent=2), {}
    if reading.mime_type != "text/markdown":
        return reading.contents, {}
    parsed = parse(reading.contents)
    return parsed.body, parsed.frontmatter


def _path(uri: str) -> str:
    parsed = uris.parse(uri)
    if parsed.scheme not in {"file", "mcp"}:
        return parsed.path
    if parsed.scheme == "mcp":
        mirrored = mount_of(parsed.path)
        return "/".join(mirrored[1]) if mirrored else parsed.path
    place = locate(f"/{parsed.path}")
    return "/".join(place[1]) if place else parsed.segments[-1]
