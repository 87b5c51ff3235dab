"""Derive MIME type, text or binary, and frontmatter metadata from a file's name and bytes. Pure."""

import hashlib
import mimetypes
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import MAX_LABELS, clean_text
from resources_app.files import frontmatter

MAX_TEXT_BYTES = 2_000_000
MAX_BINARY_BYTES = 20_000_000
DEFAULT_TEXT, DEFAULT_BINARY = "text/plain", "application/octet-stream"

# The standard table without the machine's additions, corrected where it is wrong for a team's
# files.
_STANDARD = mimetypes.MimeTypes()
_OURS = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "text/markdown"),
    **dict.fromkeys((".ts", ".tsx", ".mts", ".cts"), "text/typescript"),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), "text/javascript"),
    **dict.fromkeys((".yml", ".yaml"), "application/yaml"),
    **dict.fromkeys((".sh", ".bash", ".zsh"), "text/x-shellscript"),
    **dict.fromkeys((".c", ".h"), "text/x-c"),
    **dict.fromkeys((".cc", ".cpp", ".hpp"), "text/x-c++"),
    **dict.fromkeys(
        (".log", ".txt", ".cfg", ".ini", ".conf", ".env", ".lock", ".diff", ".patch"), "text/plain"
    ),
    ".css": "text/css",
    ".csv": "text/csv",
    ".go": "text/x-go",
    ".html": "text/html",
    ".ipynb": "application/x-ipynb+json",
    ".java": "text/x-java",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".kt": "text/x-kotlin",
    ".php": "text/x-php",
    ".py": "text/x-python",
    ".rb": "text/x-ruby",
    ".rs": "text/x-rust",
    ".sql": "application/sql",
    ".svg": "image/svg+xml",
    ".swift": "text/x-swift",
    ".toml": "application/toml",
    ".webp": "image/webp",
    ".xml": "application/xml",
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odt": "application/vnd.oasis.opendocument.text",
}
_TEXTUAL = re.compile(
    r"text/.*|.*\+(?:json|xml)|application/(?:json|jsonl|yaml|toml|xml|sql|javascript|x-sh|x-latex|x-tex|x-csh|x-tcl)"
)
_MIME_TYPE = re.compile(
    r"[a-z0-9][a-z0-9!#$&^_.+-]{0,60}/[a-z0-9][a-z0-9!#$&^_.+-]{0,60}", re.ASCII
)
_HEADING = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_HEADING_WITHIN = 4000


# Magic bytes. A file that does not start with them is of another type.
_BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "image/bmp": (b"BM",),
    "application/pdf": (b"%PDF-",),
    "application/zip": (b"PK",),
}

Facts = dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """Hold a file's bytes and type.

    `text` is None if they are undecodable, contain NUL or are of a binary type.
    """

    raw: bytes
    mime_type: str
    text: str | None

    @cached_property
    def size(self) -> int:
        return len(self.raw)

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()


def examine(name: str, raw: bytes) -> Contents:
    known = mime_type_by_name(name)
    text = None if known and not _TEXTUAL.fullmatch(known) else _decode(raw)
    if text is not None:
        return Contents(raw, known or DEFAULT_TEXT, text)
    is_known = known is not None and not _TEXTUAL.fullmatch(known) and _begins_like(known, raw)
    return Contents(raw, known if known and is_known else DEFAULT_BINARY, None)


def _begins_like(mime_type: str, raw: bytes) -> bool:
    return raw.startswith(_BEGINNINGS.get(mime_type, b""))


def examine_upload(name: str, content: str | bytes, mime_type: str | None = None) -> Contents:
    """Examine an upload.

    A string is text; bytes are inspected. A declared type is used unless the bytes contradict it.
    """
    if isinstance(content, str):
        known = mime_type_by_name(name)
        textual = known if known and _TEXTUAL.fullmatch(known) else DEFAULT_TEXT
        found = Contents(clean_text("content", content).encode(), textual, content)
    else:
        found = examine(name, content)
    refuse_too_large(found)
    return _as_declared(found, clean_mime_type(mime_type)) if mime_type else found


def _as_declared(found: Contents, mime_type: str) -> Contents:
    if not _begins_like(mime_type, found.raw):
        raise ValidationFailed(
            f"The content is not {mime_type}: it does not begin like one.", field="content"
        )
    if not _TEXTUAL.fullmatch(mime_type):
        return Contents(found.raw, mime_type, None)
    text = found.text if found.text is not None else _decode(found.raw)
    if text is None:
        raise ValidationFailed(
            f"The content is not {mime_type}: it is not UTF-8 text.", field="content"
        )
    return Contents(found.raw, mime_type, text)


def mime_type_by_name(name: str) -> str | None:
    suffix = PurePosixPath(name).suffix.lower()
    return _OURS.get(suffix) or _STANDARD.types_map[True].get(suffix)


def clean_mime_type(value: str) -> str:
    if not isinstance(value, str) or not _MIME_TYPE.fullmatch(value.lower()) or len(value) > 100:
        raise ValidationFailed(
            "mime_type must look like text/markdown.", field="mime_type", value=value
        )
    return value.lower()


def refuse_too_large(contents: Contents) -> None:
    limit = MAX_BINARY_BYTES if contents.text is None else MAX_TEXT_BYTES
    if contents.size > limit:
        raise too_large(limit)


def too_large(limit: int) -> ValidationFailed:
    return ValidationFailed(
        f"The file is larger than {limit} bytes, which is the most for its kind.",
        suggestion="Split it, or keep it elsewhere and refer to it.",
        field="content",
        max_bytes=limit,
    )


def is_markdown(path: str) -> bool:
    return mime_type_by_name(path) == "text/markdown"


def derived_columns(path: str, content: str) -> dict[str, Any]:
    """Return the columns that are derived from a text and have no separate history."""
    raw = content.encode()
    return {
        "size": len(raw),
        "sha256": hashlib.sha256(raw).hexdigest(),
        "frontmatter": frontmatter.parse(content).frontmatter if is_markdown(path) else {},
        "blob": None,
    }


def facts_of(path: str, content: str) -> Facts:
    """Return title, description and tags from a markdown file.

    The first heading serves as a title too.
    """
    if not is_markdown(path):
        return {"title": "", "description": "", "tags": []}
    parsed = frontmatter.parse(content)
    title = _line(parsed.frontmatter.get("title"), 200) or _first_heading(parsed.body)
    return {
        "title": title,
        "description": _line(parsed.frontmatter.get("description"), 2000),
        "tags": _tags(parsed.frontmatter.get("tags")),
    }


def facts_following(path: str, before: Facts, changed: Facts) -> Facts:
    """Return the metadata that changes with the text.

    These are the values derived from the old text that the same write does not set.
    """
    old, new = facts_of(path, before["content"] or ""), facts_of(path, changed["content"])
    return {
        name: new[name]
        for name in new
        if name not in changed and before[name] == old[name] != new[name]
    }


def _decode(raw: bytes) -> str | None:
    try:
        return None if b"\x00" in raw else raw.decode()
    except UnicodeDecodeError:
        return None


def _first_heading(body: str) -> str:
    match = _HEADING.search(body, 0, _HEADING_WITHIN)
    return _line(heading_text(match[1]), 200) if match else ""


def heading_text(written: str) -> str:
    """Return a heading without its closing marks: `Title ##` becomes Title, `C#` stays."""
    text = written.rstrip()
    bare = text.rstrip("#")
    return bare.rstrip() if bare != bare.rstrip() else text


def _line(value: Any, limit: int) -> str:
    if value is None or isinstance(value, bool | list | dict):
        return ""
    return " ".join(str(value).replace("\x00", "").split())[:limit].strip()


def _tags(value: Any) -> list[str]:
    entries = (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    )
    tags = [_line(entry, 50) for entry in entries]
    return list(dict.fromkeys(tag for tag in tags if tag))[:MAX_LABELS]
