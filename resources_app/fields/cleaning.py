"""Check the values of fields: from what a caller sent to the public value, or ValidationFailed."""

import datetime
import re
from collections.abc import Callable
from typing import Any

from resources_app.errors import ValidationFailed

MAX_TEXT = 2_000_000
MAX_ENTRIES = 500
MAX_LABELS = 50
# Placeholder for the id of a task or epic that the caller cannot see.
HIDDEN = "hidden"

_REF = re.compile(r"(TASK|EPIC)-([0-9]{4,15})", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BREAKS = re.compile("[\t\n\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]+")
# Control characters and bidirectional formatting characters, which make text display differently
# from its content.
_INVISIBLE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_SAFE_URL = re.compile(r"(?!javascript:|data:|vbscript:)[\w./#?-][^\x00-\x1f\x7f]*", re.IGNORECASE)


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


def markdown(name: str, value: Any) -> str:
    return "" if value is None else clean_text(name, value)


def body(name: str, value: Any) -> str:
    if not clean_text(name, value).strip():
        raise ValidationFailed(f"{name} must not be empty.", field=name, value=value)
    return str(value)


def title(name: str, value: Any) -> str:
    title = clean_line(name, "" if value is None else value, 200).strip()
    if not title:
        raise ValidationFailed(
            f"{name} must be one line of 1 to 200 characters.", field=name, value=value
        )
    return title


def optional_line(limit: int) -> Callable[[str, Any], str]:
    return lambda name, value: "" if value is None else clean_line(name, value, limit).strip()


def optional_text(limit: int) -> Callable[[str, Any], str]:
    return lambda name, value: "" if value is None else clean_text(name, value, limit).strip()


def choice(choices: tuple[str, ...]) -> Callable[[str, Any], str]:
    def clean(name: str, value: Any) -> str:
        if value not in choices:
            raise ValidationFailed(
                f"Invalid {name} value", field=name, value=value, allowed_values=list(choices)
            )
        return str(value)

    return clean


def date(name: str, value: Any) -> str | None:
    if value in (None, ""):
        return None
    try:
        return datetime.date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise ValidationFailed(
            f"{name} must be a date as YYYY-MM-DD.", field=name, value=value
        ) from None


def number(least: float, most: float, decimals: int) -> Callable[[str, Any], int | float | None]:
    """Check a number with a limited number of decimals. Whole numbers become integers."""

    def clean(name: str, value: Any) -> int | float | None:
        if value in (None, ""):
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not least <= value <= most:
            raise ValidationFailed(
                f"{name} must be a number from {least} to {most}.",
                field=name,
                value=value,
                minimum=least,
                maximum=most,
            )
        if round(value, decimals) != value:
            raise ValidationFailed(
                f"{name} must have at most {decimals} decimals.", field=name, value=value
            )
        return whole(value)

    return clean


def whole(value: float) -> int | float:
    """Return 3 for 3.0, so that a number has one form in JSON."""
    return int(value) if value == int(value) else value


def parse_number(text: str) -> int | float | None:
    """Parse a number typed by a person or written in a query. Return None for anything else."""
    if not _NUMBER.fullmatch(text):
        return None
    return whole(float(text))


def username(name: str, value: Any) -> str | None:
    return None if value in (None, "") else clean_text(name, value, 150)


def strings(limit: int, most: int, *, unique: bool = False) -> Callable[[str, Any], list[str]]:
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


def references(name: str, value: Any) -> list[dict[str, str]]:
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


def refs(prefix: str) -> Callable[[str, Any], list[str]]:
    clean_ref = ref(prefix)

    def clean(name: str, value: Any) -> list[str]:
        found = [clean_ref(name, entry) for entry in _list(name, value, MAX_ENTRIES)]
        return [
            one
            for place, one in enumerate(found)
            if one and (one == HIDDEN or one not in found[:place])
        ]

    return clean


def ref(prefix: str) -> Callable[[str, Any], str | None]:
    def clean(name: str, value: Any) -> str | None:
        if value in (None, ""):
            return None
        if value != HIDDEN and parse_ref(value, prefix) is None:
            raise ValidationFailed(
                f"{name} must be an id like {prefix}-0001.", field=name, value=value
            )
        return str(value)

    return clean


def refused(name: str, value: Any) -> Any:
    raise ValidationFailed(f"{name} cannot be written.", field=name, value=value)
