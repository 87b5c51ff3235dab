"""Render a task or epic as backlog-mcp does: markdown with YAML frontmatter. item_files.py reads
such files.
"""

import datetime
from typing import Any

from resources_app.fields.declarations import FIELDS, writable_names
from resources_app.files import frontmatter
from resources_app.history.documents import document_of
from resources_app.history.revisions import Document
from resources_app.models import Epic, Task
from resources_app.vocabulary import Kind

# Key in `extra` for the import's bookkeeping. Every other key there is frontmatter that no field
# could hold.
BOOKKEEPING = "_backlog"
TITLE_LENGTH = 200

IDENTITY = ("id", "title", "status", "type")
TIMES = ("created_at", "updated_at", "archived_at")
# The title and the status are part of the identity, and the description is the body.
FIELD_KEYS = tuple(
    name for name in writable_names(Kind.TASK) if name not in {*IDENTITY, "description"}
)
_ORDER = (*IDENTITY, *FIELD_KEYS, *TIMES)
# The file's value wins over ours here: it could not be parsed, so it cannot be outdated.
_AS_WRITTEN = ("type", *TIMES)

Facts = dict[str, Any]


def item_frontmatter(item: Task | Epic, document: Document | None = None) -> Facts:
    shown = document_of(item) if document is None else document
    return frontmatter_of(item.KIND, item.ref, shown, item.created_at, item.updated_at)


def frontmatter_of(
    kind: str,
    ref: str,
    shown: Document,
    created_at: datetime.datetime,
    updated_at: datetime.datetime,
) -> Facts:
    """Return our fields in a fixed order without empty ones, followed by the other keys of the
    imported file.
    """
    facts: Facts = {
        "id": ref,
        "title": shown["title"],
        "status": shown["status"],
        "type": str(kind),
    }
    facts |= {
        name: _as_fact(name, shown[name]) for name in FIELD_KEYS if _is_given(kind, name, shown)
    }
    facts |= {"created_at": write_time(created_at), "updated_at": write_time(updated_at)}
    if shown.get("archived_at"):
        facts["archived_at"] = write_time(datetime.datetime.fromisoformat(shown["archived_at"]))
    return _in_order(facts | _still_valid(kind, facts, _sorted_keys(kept_keys(shown))))


def item_markdown(item: Task | Epic, document: Document | None = None) -> str:
    shown = document_of(item) if document is None else document
    return frontmatter.render(item_frontmatter(item, shown), write_body(shown["description"]))


def kept_keys(document: Document) -> Facts:
    return {key: value for key, value in document.get("extra", {}).items() if key != BOOKKEEPING}


def write_time(moment: datetime.datetime) -> str:
    """Format a time with milliseconds where that is exact, as backlog-mcp does."""
    precision = "auto" if moment.microsecond % 1000 or not moment.microsecond else "milliseconds"
    return moment.astimezone(datetime.UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def write_body(description: str) -> str:
    """End the body with a line break, as files do. read_body returns exactly the description that
    was written.
    """
    if not description:
        return ""
    return f"\n{description}\n" if description.startswith("\n") else f"{description}\n"


def read_body(body: str) -> str:
    """Strip the blank line that often follows the frontmatter, and the last line break."""
    return body.removeprefix("\n").removesuffix("\n")


def shorten_title(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"


def _is_given(kind: str, name: str, document: Document) -> bool:
    field = FIELDS[kind].get(name)
    return field is not None and document.get(name, field.empty) != field.empty


def _as_fact(name: str, value: Any) -> Any:
    if name != "references":
        return value
    return [{key: text for key, text in entry.items() if key == "url" or text} for entry in value]


def _still_valid(kind: str, facts: Facts, kept: Facts) -> Facts:
    """Return the values that no field could hold unchanged, until the field gets a value."""
    valid: Facts = {}
    for key, value in kept.items():
        field = FIELDS[kind].get(key)
        if field is None or key in _AS_WRITTEN:
            valid[key] = value
        elif field.shape == "array":
            valid[key] = [*facts.get(key, []), *(value if isinstance(value, list) else [value])]
        elif key == "title":
            valid[key] = value if shorten_title(str(value)) == facts["title"] else facts["title"]
        elif facts.get(key, field.empty) == field.empty:
            valid[key] = value
    return valid


def _in_order(facts: Facts) -> Facts:
    """Sort the keys that are not ours at every depth, because not every database keeps their
    order.
    """
    ours = {key: facts[key] for key in _ORDER if key in facts}
    return ours | {key: _sorted_keys(facts[key]) for key in sorted(facts) if key not in ours}


def _sorted_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    return [_sorted_keys(entry) for entry in value] if isinstance(value, list) else value
