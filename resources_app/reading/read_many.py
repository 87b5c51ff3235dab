"""Read several resources in one response of bounded size.

Ids and URIs can be mixed, and truncation is always reported.
"""

import bisect
import json
import re
from dataclasses import dataclass
from typing import Any

from resources_app.addresses.targets import AREAS
from resources_app.addresses.uris import build, build_path
from resources_app.errors import BacklogError, ValidationFailed
from resources_app.identity.roles import Actor, Person
from resources_app.intelligencebank import browsing
from resources_app.reading.by_address import read
from resources_app.reading.result import Reading

MAX_THINGS = 50
MIN_TOKENS, DEFAULT_TOKENS, MAX_TOKENS = 100, 8000, 20_000
# Conservative estimate for our JSON in UTF-8, for any script and the common tokenizers.
BYTES_PER_TOKEN = 2.5
# Size of a response's brackets and cursor, and of the truncation note.
FRAME, NOTE = 60, 80
# A shorter piece of text is not worth a call.
LEAST = 50
_MIRRORED_ID = re.compile("[0-9a-f]{32}")
_COLLECTIONS = {"TASK": "tasks", "EPIC": "epics"}


@dataclass(frozen=True)
class Place:
    """Mark the place where a response continues: the index of the resource and the offset in its
    text.
    """

    index: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.index}:{self.offset}"


def uri_for(name: str) -> str:
    """Return the URI for TASK-0001, EPIC-0001 or a file path. Anything else is already a URI."""
    collection = _COLLECTIONS.get(name.partition("-")[0])
    if collection and "://" not in name:
        return build(collection, name)
    return build_path(name) if name.partition("/")[0] in AREAS and "/" in name else name


def address_of(user: Person, name: str) -> str:
    """Return the URI for the id of any search result.

    Mirrored objects use the id of their tenant.
    """
    return (browsing.uri_named(user, name) if _MIRRORED_ID.fullmatch(name) else None) or uri_for(
        name
    )


def weight(value: Any) -> int:
    """Return the size in bytes as compact JSON."""
    return len(
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
    )


def room_for(max_tokens: int) -> int:
    """Return the response size in bytes for `max_tokens`."""
    if not MIN_TOKENS <= max_tokens <= MAX_TOKENS:
        raise ValidationFailed(
            f"max_tokens is {MIN_TOKENS} to {MAX_TOKENS}.", field="max_tokens", value=max_tokens
        )
    return int(max_tokens * BYTES_PER_TOKEN)


def fitting(text: str, room: int) -> int:
    """Return how many characters of a text fit into `room` bytes of JSON."""
    lengths = range(min(len(text), max(room, 0)) + 1)
    return bisect.bisect_right(lengths, room, key=lambda length: weight(text[:length]) - 2) - 1


def read_many(
    actor: Actor, names: list[str], max_tokens: int, cursor: str | None
) -> dict[str, Any]:
    """Read several resources.

    `next_cursor` names what did not fit; an error takes the place of its result.
    """
    if not 1 <= len(names) <= MAX_THINGS:
        raise ValidationFailed(
            f"Name 1 to {MAX_THINGS} ids or URIs.", field="id", max_entries=MAX_THINGS
        )
    left = room_for(max_tokens) - FRAME
    place = _parse(cursor, len(names))
    results: list[dict[str, Any]] = []
    for index in range(place.index, len(names)):
        offset = place.offset if index == place.index else 0
        shown, after = _fit(_shown(actor, names[index]), offset, left, is_first=not results)
        if shown is None:
            return {"results": results, "next_cursor": str(Place(index))}
        results.append(shown)
        if after:
            return {"results": results, "next_cursor": str(Place(index, after))}
        left -= weight(shown) + 1
    return {"results": results, "next_cursor": None}


def _shown(actor: Actor, name: str) -> dict[str, Any]:
    try:
        return _lean(read(actor, address_of(actor.user, name)))
    except BacklogError as error:
        return {"uri": name, "error": error.as_json()}


def _lean(reading: Reading) -> dict[str, Any]:
    whole = reading.as_json()
    kept = {
        name: whole[name]
        for name in ("uri", "mime_type", "etag", "version", "contents", "encoding")
        if name in whole
    }
    return kept | {"writable": whole["capabilities"]["writable"]}


def _fit(
    shown: dict[str, Any], offset: int, left: int, *, is_first: bool
) -> tuple[dict[str, Any] | None, int]:
    """Return the resource or the part of its text that fits, and the end of that part.

    Return None if the resource should wait for the next response.
    """
    owner, key = _text_place(shown)
    text = owner.get(key, "") if owner else ""
    if offset:
        owner[key] = text = text[offset:]
        shown["continues_from"] = offset
    if "encoding" in shown:
        left //= 2  # base64 takes more tokens per byte than readable text
    if weight(shown) <= left:
        return shown, 0
    if not is_first:
        return None, 0
    kept = fitting(text, left - NOTE - (weight(shown) - weight(text)))
    if kept < min(LEAST, len(text)) or not text:
        return _too_large(shown), 0
    owner[key] = text[:kept]
    shown["truncated"] = {"field": key, "characters_left": len(text) - kept}
    return shown, offset + kept


def _too_large(shown: dict[str, Any]) -> dict[str, Any]:
    error = ValidationFailed(
        f"This alone takes about {int(weight(shown) / BYTES_PER_TOKEN)} tokens.",
        suggestion=(
            f"Raise max_tokens, {MAX_TOKENS} at most; or ask for less: one field, one element "
            "(…/evidence/0), a smaller limit."
        ),
        field="max_tokens",
    )
    return {"uri": shown["uri"], "error": error.as_json()}


def _text_place(shown: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the location of a result's long text: a text resource itself, or the description of an
    item.
    """
    contents = shown.get("contents")
    if isinstance(contents, str):
        return shown, "contents"
    if isinstance(contents, dict) and isinstance(contents.get("description"), str):
        return contents, "description"
    return {}, ""


def _parse(cursor: str | None, count: int) -> Place:
    if not cursor:
        return Place()
    index, _, offset = cursor.partition(":")
    if (
        not all(part.isascii() and part.isdigit() and len(part) < 10 for part in (index, offset))
        or int(index) >= count
    ):
        raise ValidationFailed(
            "cursor must be the next_cursor of the answer before, with the same ids.",
            field="cursor",
        )
    return Place(int(index), int(offset))
