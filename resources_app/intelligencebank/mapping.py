"""Convert IntelligenceBank rows to facts we store.

Pure: only stable fields, cleaned; signed URLs are never kept.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

MAX_NAME = 10_000
MAX_TEXT = 100_000
MAX_TAGS = 500
MAX_SORT = 200
NO_PARENT = "0" * 32
ACTIONS = ("list", "view", "publish", "admin")

# The picture's current URL, and derived values.
_UNSTABLE = {"thumbnail", "content_hash"}
_ID = re.compile(r"[0-9a-f]{32}")
# Control and formatting characters that could hide or reorder text, lone surrogates, and unstorable
# characters.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:?00)?")


class Malformed(ValueError):
    """Report a row that cannot be stored. The message gives the reason without quoting the row."""


@dataclass(frozen=True)
class FolderFacts:
    ib_id: str
    parent_ib_id: str
    name: str
    description: str
    thumbnail: str
    folders_count: int
    resources_count: int
    is_public: bool
    is_deleted: bool

    @cached_property
    def content_hash(self) -> str:
        return _digest(self)


@dataclass(frozen=True)
class ResourceFacts:
    ib_id: str
    folder_ib_id: str
    name: str
    description: str
    tags: tuple[str, ...]
    kind: str
    mime_type: str
    file_name: str
    size: int | None
    file_hash: str
    width: int | None
    height: int | None
    thumbnail: str
    is_public: bool
    creator: str
    updater: str
    version_number: int
    source_created_at: datetime | None
    source_updated_at: datetime | None
    is_deleted: bool

    @cached_property
    def content_hash(self) -> str:
        return _digest(self)


def folder_facts(row: Any) -> FolderFacts:
    row = _object(row)
    parent = row.get("parent") or ""
    if parent and not _is_id(parent):
        raise Malformed("its parent is not an id")
    return FolderFacts(
        ib_id=_identity(row),
        parent_ib_id="" if parent == NO_PARENT else parent,
        name=_name(row),
        description=clean_text(row.get("description"), MAX_TEXT),
        thumbnail=unsigned(row.get("thumbnail")),
        folders_count=_number(row.get("folders_count")) or 0,
        resources_count=_number(row.get("resources_count")) or 0,
        is_public=_flag(row.get("isPublic")),
        is_deleted=row.get("status") == "deleted",
    )


def resource_facts(row: Any) -> ResourceFacts:
    row = _object(row)
    file = row.get("file") if isinstance(row.get("file"), dict) else {}
    folder = row.get("folder")
    if not _is_id(folder):
        raise Malformed("its folder is not an id")
    return ResourceFacts(
        ib_id=_identity(row),
        folder_ib_id=folder,
        name=_name(row),
        description=clean_text(row.get("description"), MAX_TEXT),
        tags=_tags(row.get("tags")),
        kind=clean_text(row.get("fancyFileType"), 100),
        mime_type=_mime(file.get("type")),
        file_name=clean_text(file.get("name"), 500),
        size=_number(file.get("size")),
        file_hash=clean_text(file.get("hash") or row.get("fileHash"), 128),
        width=_number(row.get("imageWidth")),
        height=_number(row.get("imageHeight")),
        thumbnail=unsigned(row.get("thumbnail")),
        is_public=_flag(row.get("isPublic")),
        creator=clean_text(row.get("creatorName"), 200),
        updater=clean_text(row.get("lastUpdaterName"), 200),
        version_number=_number(row.get("versionNumber")) or 1,
        source_created_at=moment(row.get("createTime")),
        source_updated_at=moment(row.get("lastUpdateTime")),
        is_deleted=row.get("status") == "deleted",
    )


def allowed_actions(row: Any) -> tuple[str, ...]:
    """Return the actions of the session that queried. Unknown words grant nothing."""
    given = row.get("allowedActions") if isinstance(row, dict) else None
    return tuple(action for action in ACTIONS if isinstance(given, list) and action in given)


def id_of(row: Any) -> str:
    return row["_id"] if isinstance(row, dict) and _is_id(row.get("_id")) else ""


def sort_key(name: str) -> str:
    """Return the sort key of lists, short enough for any index."""
    return name.casefold()[:MAX_SORT]


def moment(value: Any) -> datetime | None:
    """Parse a time.

    IntelligenceBank writes UTC to the second; `0000-00-00` and similar mean unknown.
    """
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value[:19]).replace(tzinfo=UTC)
    except ValueError:
        return None


def unsigned(url: Any) -> str:
    """Return the URL without its query, which may carry sessions and tokens."""
    if not isinstance(url, str) or len(url) > 2000:
        return ""
    try:
        parts = urlsplit(url)
        is_address = url.isprintable() and parts.port != 0
    except ValueError:  # a non-numeric port, an unclosed bracket
        return ""
    if (
        not is_address
        or parts.scheme not in {"https", "http"}
        or "@" in parts.netloc
        or "sid=" in parts.path.lower()
    ):
        return ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _digest(facts: FolderFacts | ResourceFacts) -> str:
    stable = [(name, value) for name, value in vars(facts).items() if name not in _UNSTABLE]
    return hashlib.sha256(repr(stable).encode()).hexdigest()


def _object(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise Malformed("it is not an object")
    return row


def _identity(row: dict[str, Any]) -> str:
    if not _is_id(row.get("_id")):
        raise Malformed("it has no id")
    return str(row["_id"])


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _name(row: dict[str, Any]) -> str:
    if not isinstance(row.get("name"), str):
        raise Malformed("it has no name")
    return clean_text(row["name"], MAX_NAME) or "(no name)"


def clean_text(value: Any, most: int) -> str:
    """Return the text without characters that could hide or reorder it, or "" if the value is not
    text.
    """
    return _UNSAFE.sub("", value)[:most].strip() if isinstance(value, str) else ""


def _tags(value: Any) -> tuple[str, ...]:
    given = value if isinstance(value, list) else value.split(",") if isinstance(value, str) else []
    tags = (clean_text(tag, 200) for tag in given[:MAX_TAGS])
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def _mime(value: Any) -> str:
    text = clean_text(value, 100).lower()
    return text if re.fullmatch(r"[\w.+-]+/[\w.+-]+", text) else ""


def _number(value: Any) -> int | None:
    """Parse a number, which may arrive as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value[:18])
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return None
    return int(value)


def _flag(value: Any) -> bool:
    return value is True or value in (1, "1", "true")
