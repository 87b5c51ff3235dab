"""Declare the fields of each kind. One declaration drives validation, history, schemas and URIs."""

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resources_app.editing.operations import ALLOWED, Shape
from resources_app.errors import ValidationFailed
from resources_app.vocabulary import Kind, Priority, Status

MAX_TEXT = 2_000_000
MAX_ENTRIES = 500
MAX_LABELS = 50
# Placeholder for the id of a task or epic that the caller cannot see.
HIDDEN = "hidden"

_REF = re.compile(r"(TASK|EPIC)-([0-9]{4,15})", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]+")
# Control characters and bidirectional formatting characters, which make text display differently
# from its content.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SAFE_URL = re.compile(r"(?!javascript:|data:|vbscript:)[\w./#?-][^\x00-\x1f\x7f]*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Field:
    name: str
    shape: Shape
    mime_type: str
    clean: Callable[[str, Any], Any]
    description: str
    empty: Any = None
    writable: bool = True
    required: bool = False
    choices: tuple[str, ...] = ()
    max_length: int | None = None

    @property
    def operations(self) -> tuple[str, ...]:
        return ALLOWED[self.shape] if self.writable else ()


def parse_ref(ref: Any, prefix: str) -> int | None:
    """Parse a ref: TASK-0042 → 42. Return None for anything but the canonical form."""
    match = _REF.fullmatch(ref) if isinstance(ref, str) else None
    if match is None or match[1] != prefix or f"{prefix}-{int(match[2]):04d}" != ref:
        return None
    return int(match[2])


def clean_text(name: str, value: Any, max_length: int = MAX_TEXT) -> str:
    """Check a string before it is stored.

    PostgreSQL rejects NUL, and a lone surrogate makes invalid JSON.
    """
    if not isinstance(value, str):
        raise ValidationFailed(f"{name} must be a string.", field=name, value=value)
    if "\x00" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise ValidationFailed(f"{name} must not contain NUL or unpaired surrogates.", field=name)
    if len(value) > max_length:
        raise ValidationFailed(
            f"{name} must be at most {max_length} characters (got {len(value)}).",
            field=name,
            value=f"{value[:100]}…",
            max_length=max_length,
        )
    return value


def clean_line(name: str, value: Any, max_length: int = MAX_TEXT) -> str:
    """Return one line without control and bidirectional formatting characters.

    Line breaks and tabs become spaces.
    """
    line = _INVISIBLE.sub("", _BREAKS.sub(" ", clean_text(name, value)))
    return clean_text(name, line, max_length)


def _markdown(name: str, value: Any) -> str:
    return "" if value is None else clean_text(name, value)


def _body(name: str, value: Any) -> str:
    if not clean_text(name, value).strip():
        raise ValidationFailed(f"{name} must not be empty.", field=name, value=value)
    return str(value)


def _title(name: str, value: Any) -> str:
    title = clean_line(name, "" if value is None else value, 200).strip()
    if not title:
        raise ValidationFailed(
            f"{name} must be one line of 1 to 200 characters.", field=name, value=value
        )
    return title


def _optional_line(limit: int) -> Callable[[str, Any], str]:
    return lambda name, value: "" if value is None else clean_line(name, value, limit).strip()


def _optional_text(limit: int) -> Callable[[str, Any], str]:
    return lambda name, value: "" if value is None else clean_text(name, value, limit).strip()


def _choice(choices: tuple[str, ...]) -> Callable[[str, Any], str]:
    def clean(name: str, value: Any) -> str:
        if value not in choices:
            raise ValidationFailed(
                f"Invalid {name} value", field=name, value=value, allowed_values=list(choices)
            )
        return str(value)

    return clean


def _date(name: str, value: Any) -> str | None:
    if value in (None, ""):
        return None
    try:
        return datetime.date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ValidationFailed(
            f"{name} must be a date as YYYY-MM-DD.", field=name, value=value
        ) from None


def _username(name: str, value: Any) -> str | None:
    return None if value in (None, "") else clean_text(name, value, 150)


def _strings(limit: int, most: int, *, unique: bool = False) -> Callable[[str, Any], list[str]]:
    """Clean a list of texts, or with `unique` a set of single-line words."""
    clean_entry = clean_line if unique else clean_text

    def clean(name: str, value: Any) -> list[str]:
        entries = [clean_entry(name, entry, limit) for entry in _list(name, value, most)]
        if not all(entry.strip() for entry in entries):
            raise ValidationFailed(
                f"{name} must not contain an empty entry.", field=name, value=value
            )
        return list(dict.fromkeys(entry.strip() for entry in entries)) if unique else entries

    return clean


def _list(name: str, value: Any, most: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValidationFailed(f"{name} must be a list.", field=name, value=value)
    if len(value) > most:
        raise ValidationFailed(
            f"{name} must have at most {most} entries (got {len(value)}).",
            field=name,
            max_entries=most,
        )
    return value


def _references(name: str, value: Any) -> list[dict[str, str]]:
    return [_reference(name, entry) for entry in _list(name, value, MAX_ENTRIES)]


def _reference(name: str, entry: Any) -> dict[str, str]:
    entry = {"url": entry} if isinstance(entry, str) else entry
    if not isinstance(entry, dict) or not {"url"} <= set(entry) <= {"url", "title"}:
        raise ValidationFailed(f"Each entry of {name} is {{url, title}}.", field=name, value=entry)
    url = clean_text(f"{name}.url", entry["url"], 2000).strip()
    if not _SAFE_URL.fullmatch(url):
        raise ValidationFailed(
            f"{name}.url must be a path or a link in one line, and no javascript:, data: or"
            " vbscript:.",
            field=name,
            value=url,
        )
    return {"url": url, "title": clean_line(f"{name}.title", entry.get("title") or "", 500)}


def _refs(prefix: str) -> Callable[[str, Any], list[str]]:
    def clean(name: str, value: Any) -> list[str]:
        refs = [_ref(prefix)(name, ref) for ref in _list(name, value, MAX_ENTRIES)]
        return [
            ref
            for place, ref in enumerate(refs)
            if ref and (ref == HIDDEN or ref not in refs[:place])
        ]

    return clean


def _ref(prefix: str) -> Callable[[str, Any], str | None]:
    def clean(name: str, value: Any) -> str | None:
        if value in (None, ""):
            return None
        if value != HIDDEN and parse_ref(value, prefix) is None:
            raise ValidationFailed(
                f"{name} must be an id like {prefix}-0001.", field=name, value=value
            )
        return str(value)

    return clean


def _refused(name: str, value: Any) -> Any:
    raise ValidationFailed(f"{name} cannot be written.", field=name, value=value)


_STATUSES = tuple(Status.labels)
_PRIORITIES = tuple(Priority.labels)
_PLAIN, _MARKDOWN, _JSON = "text/plain", "text/markdown", "application/json"


def _protected(name: str, description: str) -> Field:
    return Field(name, "scalar", _PLAIN, _refused, description, writable=False)


_ITEM = (
    Field(
        "title",
        "text",
        _PLAIN,
        _title,
        "One line that says what is to be done",
        "",
        required=True,
        max_length=200,
    ),
    Field(
        "description",
        "text",
        _MARKDOWN,
        _markdown,
        "The description in markdown",
        "",
        max_length=MAX_TEXT,
    ),
    Field(
        "status",
        "scalar",
        _PLAIN,
        _choice(_STATUSES),
        "Where the work stands",
        "open",
        choices=_STATUSES,
    ),
    Field(
        "priority",
        "scalar",
        _PLAIN,
        _choice(_PRIORITIES),
        "How urgent it is",
        "none",
        choices=_PRIORITIES,
    ),
    Field(
        "labels", "array", _JSON, _strings(50, MAX_LABELS, unique=True), "Words to filter by", []
    ),
    Field("assignee", "scalar", _PLAIN, _username, "The username of who does it", max_length=150),
    Field("due_date", "scalar", _PLAIN, _date, "The day it is due, as YYYY-MM-DD"),
    Field(
        "evidence", "array", _JSON, _strings(10_000, MAX_ENTRIES), "What shows that it is done", []
    ),
    Field(
        "blocked_reason",
        "array",
        _JSON,
        _strings(10_000, MAX_ENTRIES),
        "What stands in the way",
        [],
    ),
    Field("references", "array", _JSON, _references, "Links, each {url, title}", []),
    Field(
        "groups",
        "array",
        _JSON,
        _strings(150, 20, unique=True),
        "Groups it is limited to; empty: whole team",
        [],
    ),
)
_TASK_ONLY = (
    Field(
        "epic_id", "scalar", _PLAIN, _ref("EPIC"), "The epic it belongs to; parent_id is the same"
    ),
    Field("depends_on", "array", _JSON, _refs("TASK"), "Tasks that must be finished first", []),
)
_PROTECTED = (
    _protected("id", "The id"),
    _protected("type", "task or epic"),
    _protected("created_at", "When it was created"),
    _protected("updated_at", "When it last changed"),
    _protected("archived_at", "When it was archived; archive with DELETE"),
    _protected("version", "Counts the writes"),
    _protected("etag", "Changes with every write"),
)

FIELDS: dict[str, dict[str, Field]] = {
    Kind.TASK: {field.name: field for field in (*_ITEM, *_TASK_ONLY, *_PROTECTED)},
    Kind.EPIC: {field.name: field for field in (*_ITEM, *_PROTECTED)},
    Kind.COMMENT: {
        "body": Field(
            "body", "text", _MARKDOWN, _body, "The comment in markdown", "", required=True
        ),
    },
    Kind.RESOURCE: {
        field.name: field
        for field in (
            Field(
                "content",
                "text",
                _MARKDOWN,
                _markdown,
                "The text of the file",
                "",
                max_length=MAX_TEXT,
            ),
            Field("title", "text", _PLAIN, _optional_line(200), "A title", "", max_length=200),
            Field(
                "description",
                "text",
                _PLAIN,
                _optional_text(2000),
                "What the file is for",
                "",
                max_length=2000,
            ),
            Field(
                "tags",
                "array",
                _JSON,
                _strings(50, MAX_LABELS, unique=True),
                "Words to filter by",
                [],
            ),
            Field(
                "groups",
                "array",
                _JSON,
                _strings(150, 20, unique=True),
                "Groups it is limited to",
                [],
            ),
        )
    },
}
ALIASES = {"parent_id": "epic_id"}


def field_of(kind: str, name: str) -> Field | None:
    return FIELDS[kind].get(ALIASES.get(name, name) if kind == Kind.TASK else name)


def writable_names(kind: str) -> list[str]:
    return [field.name for field in FIELDS[kind].values() if field.writable]
