"""Parse the markdown file of a task or epic, even if hand-edited.

Values that fit no field are kept. Pure.
"""

import datetime
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.fields.cleaning import MAX_TEXT, parse_number
from resources_app.fields.declarations import FIELDS, Field, Type
from resources_app.files import frontmatter
from resources_app.files.contents import heading_text
from resources_app.reading.markdown import BOOKKEEPING, FIELD_KEYS, TIMES, read_body, shorten_title
from resources_app.vocabulary import Kind

_ID = re.compile(r"(TASK|EPIC)-([0-9]{1,15})(?![0-9])", re.ASCII | re.IGNORECASE)
FOLDER_ID = re.compile(r"FLDR-([0-9]{1,15})(?![0-9])", re.ASCII | re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} +(\S.*)$", re.MULTILINE)
_ANCHOR = re.compile(r"[:,\[-]\s*&(\w+)", re.ASCII)
_KINDS = {"TASK": Kind.TASK, "EPIC": Kind.EPIC}
_PLAIN = (str, int, float)

# Formatting of a file: verbatim head, blank lines around the text, line endings. See
# file_layout.py.
Layout = dict[str, Any]


@dataclass
class ItemFile:
    """Hold a parsed file.

    `values` has every field; `kept` has the keys and values that fit no field, as named in the
    file.
    """

    path: str
    kind: str
    number: int
    values: dict[str, Any] = field(default_factory=dict)
    kept: dict[str, Any] = field(default_factory=dict)
    times: dict[str, datetime.datetime] = field(default_factory=dict)
    archived: bool = False
    warnings: list[str] = field(default_factory=list)
    layout: Layout = field(default_factory=dict)
    digest: str = ""
    # The backlog-mcp folder of the item, and the mode it was imported with: "epics" or "labels".
    folder: str = ""
    folders_as: str = ""

    @property
    def ref(self) -> str:
        return make_ref(self.kind, self.number)

    def keep(self, name: str, value: Any, reason: str) -> None:
        """Keep a value under its name. Lists are appended to what is already kept."""
        before = self.kept.get(name, []) if isinstance(value, list) else []
        self.kept[name] = [*before, *value] if isinstance(value, list) else value
        self.warnings.append(f"{reason} Kept as it is, but without effect.")

    def digests(self) -> dict[str, str]:
        """Return a digest per field.

        The next import compares them to detect changes in the file.
        """
        fields = {
            name: _digest([value, self.kept.get(name)]) for name, value in self.values.items()
        }
        return fields | {"archived": _digest(self.archived)}


def make_ref(kind: str, number: int) -> str:
    return f"{'TASK' if kind == Kind.TASK else 'EPIC'}-{number:04d}"


def read_item_file(
    path: str, text: str, beside: dict[str, Any] | None = None, *, as_epic: int | None = None
) -> ItemFile:
    """Parse a file. Raises ValidationFailed only if nothing can be made of it.

    `beside` is frontmatter that was too long for the file. `as_epic` is the number of the epic that
    a folder of backlog-mcp becomes.
    """
    written = text
    text = unix_lines(written)
    parsed = frontmatter.parse(text)
    if _repeats_itself(parsed):
        raise ValidationFailed(
            "Its frontmatter uses YAML aliases, which are refused: they can grow without bounds."
        )
    if not parsed.head and text.startswith("---"):
        raise ValidationFailed(
            parsed.problems[0]
            if parsed.problems
            else "The frontmatter does not end: no second '---'."
        )
    facts = parsed.frontmatter | (beside or {})
    item = _identify(path, facts) if as_epic is None else _folder_as_epic(path, facts, as_epic)
    item.warnings += parsed.problems
    item.digest = digest_of(written)
    if not parsed.problems and not beside:
        item.layout = layout_of(written, parsed.head, parsed.body)
    if facts.pop(BOOKKEEPING, None) is not None:
        item.warnings.append(f"The key {BOOKKEEPING!r} is reserved and was left out.")
    _take_texts(item, facts, read_body(parsed.body))
    _take_times(item, facts)
    _take_parent(item, facts)
    for name in FIELD_KEYS:
        _take_field(item, facts, name)
    _take_word(item, facts, "status")
    item.kept = {key: value for key, value in facts.items() if key not in item.kept} | item.kept
    return item


def _repeats_itself(parsed: frontmatter.Parsed) -> bool:
    """Return whether an anchor (&name) is referenced (*name).

    In valid frontmatter these are parts of quoted text.
    """
    anchors = _ANCHOR.findall(parsed.head) if parsed.problems else []
    return any(f"*{name}" in parsed.head for name in anchors)


def layout_of(written: str, head: str, body: str) -> Layout:
    """Return the layout, or nothing for a file without frontmatter, because our exports always have
    some.
    """
    rest = body.removeprefix("\n")
    layout = {
        "head": head,
        "before": body[: len(body) - len(rest)],
        "after": "\n" if rest.endswith("\n") else "",
        "crlf": written.partition("\n")[0].endswith("\r"),
        "bom": written.startswith("\ufeff"),
    }
    return {name: value for name, value in layout.items() if value} if head else {}


def unix_lines(text: str) -> str:
    """Normalize line endings of files saved on Windows (CRLF frontmatter).

    A CR inside our own texts stays.
    """
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n") if text.partition("\n")[0].endswith("\r") else text


def _identify(path: str, facts: dict[str, Any]) -> ItemFile:
    given = facts.pop("id", None)
    by_key = _ID.fullmatch(str(given).strip()) if given is not None else None
    by_name = _ID.match(PurePosixPath(path).name)
    match = by_key or by_name
    if match is None:
        named = "" if given is None else f" ({given!r} is none)"
        raise ValidationFailed(
            f"There is no id like TASK-0001 in the frontmatter{named} or the file name."
        )
    item = ItemFile(path, _KINDS[match[1].upper()], int(match[2]))
    if item.number == 0:
        raise ValidationFailed("Ids count from 1.")
    if given is not None and by_key is None:
        item.warnings.append(
            f"The id {given!r} is not a valid id; taken from the file name: {item.ref}."
        )
    elif by_key and by_name and int(by_name[2]) != item.number:
        item.warnings.append(
            f"The id in the file is {item.ref}, which counts, not the file's name."
        )
    if facts.get("type") in (None, item.kind):
        facts.pop("type", None)
    else:
        item.keep(
            "type",
            facts.pop("type"),
            f"By its id it is {'an' if item.kind == Kind.EPIC else 'a'} {item.kind}.",
        )
    return item


def _folder_as_epic(path: str, facts: dict[str, Any], number: int) -> ItemFile:
    facts.pop("id", None)
    facts.pop("type", None)
    return ItemFile(path, Kind.EPIC, number)


def _take_texts(item: ItemFile, facts: dict[str, Any], body: str) -> None:
    if not body.strip() and isinstance(facts.get("description"), str):
        body = facts.pop("description")
    if len(body) > MAX_TEXT:
        raise ValidationFailed(f"The text must be at most {MAX_TEXT} characters (got {len(body)}).")
    item.values["description"] = FIELDS[item.kind]["description"].clean("description", body)
    item.values["title"] = _take_title(item, facts, body)


def _take_title(item: ItemFile, facts: dict[str, Any], body: str) -> str:
    raw = facts.pop("title", None)
    if isinstance(raw, _PLAIN) and str(raw).strip():
        return _usable_title(item, str(raw))
    if raw is not None:
        item.warnings.append(f"The title {raw!r} is no text.")
    heading = _HEADING.search(body)
    title = (
        shorten_title(heading_text(heading[1]) if heading else "") or PurePosixPath(item.path).stem
    )
    item.warnings.append(f"There is no title; it became {title!r}.")
    return title


def _usable_title(item: ItemFile, raw: str) -> str:
    try:
        return str(FIELDS[item.kind]["title"].clean("title", raw))
    except ValidationFailed as error:
        title = shorten_title(raw)
        item.keep("title", raw, f"{error.message} It became {title!r}.")
        return title


def _take_times(item: ItemFile, facts: dict[str, Any]) -> None:
    for name in TIMES:
        raw = facts.pop(name, None)
        if raw in (None, ""):
            continue
        moment = _read_time(raw)
        if moment is None:
            item.keep(name, raw, f"{name} is not a date or time: {raw!r}.")
        else:
            item.times[name] = moment
    item.archived = "archived_at" in item.times or PurePosixPath(item.path).parts[0] == "archive"


def _read_time(raw: Any) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(str(raw).strip())
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return zoned.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _take_parent(item: ItemFile, facts: dict[str, Any]) -> None:
    """Read parent_id, the newer name of epic_id.

    An epic has neither, and only an epic can be a parent here.
    """
    if item.kind == Kind.EPIC or facts.get("parent_id") is None:
        return
    parent = facts.pop("parent_id")
    other = facts.get("epic_id")
    if folder := FOLDER_ID.fullmatch(str(parent).strip()):
        item.folder = f"FLDR-{int(folder[1]):04d}"
        item.kept["parent_id"] = parent
    elif _normal_ref("EPIC", parent) is None:
        item.keep("parent_id", parent, f"The parent {parent!r} is not an epic.")
    elif other is not None and _normal_ref("EPIC", other) != _normal_ref("EPIC", parent):
        item.warnings.append(f"parent_id is {parent} and epic_id is {other}: parent_id counts.")
        facts["epic_id"] = parent
    else:
        facts["epic_id"] = parent


def _take_field(item: ItemFile, facts: dict[str, Any], name: str) -> None:
    declared = FIELDS[item.kind].get(name)
    if declared is None:
        return
    if declared.shape == "array":
        _take_list(item, facts, declared)
    else:
        _take_word(item, facts, name)


def _take_word(item: ItemFile, facts: dict[str, Any], name: str) -> None:
    declared, raw = FIELDS[item.kind][name], facts.pop(name, None)
    try:
        given = _NORMAL.get(declared.type, _as_text)(raw)
        item.values[name] = declared.empty if given is None else declared.clean(name, given)
    except ValidationFailed as error:
        item.values[name] = declared.empty
        reason = (
            f"It is none of {', '.join(declared.choices)}." if declared.choices else error.message
        )
        item.keep(name, raw, f"{name} {raw!r} cannot be used: {reason}")


def _take_list(item: ItemFile, facts: dict[str, Any], declared: Field) -> None:
    raw = _entries(declared.name, facts.pop(declared.name, None))
    try:
        item.values[declared.name] = declared.clean(
            declared.name, [_normal_entry(declared.name, entry) for entry in raw]
        )
    except ValidationFailed:
        if declared.name == "groups":
            raise  # omitting a restriction would show the task to the whole team
        item.values[declared.name] = _usable_entries(item, declared, raw)


def _usable_entries(item: ItemFile, declared: Field, raw: list[Any]) -> list[Any]:
    usable: list[Any] = []
    for entry in raw:
        try:
            usable = declared.clean(declared.name, [*usable, _normal_entry(declared.name, entry)])
        except ValidationFailed as error:
            item.keep(
                declared.name,
                [entry],
                f"{declared.name}: {str(entry)[:80]!r} cannot be used: {error.message}",
            )
    return usable


def _entries(name: str, raw: Any) -> list[Any]:
    if raw is None or raw == "":
        return []
    if isinstance(raw, str) and name == "labels":
        return [word.strip() for word in raw.split(",") if word.strip()]
    return raw if isinstance(raw, list) else [raw]


def _normal_entry(name: str, raw: Any) -> Any:
    if name == "depends_on":
        return _normal_ref("TASK", raw) or raw
    return str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw


def _normal_ref(prefix: str, raw: Any) -> str | None:
    match = _ID.fullmatch(str(raw).strip())
    return make_ref(_KINDS[prefix], int(match[2])) if match and match[1].upper() == prefix else None


def _as_text(raw: Any) -> Any:
    return str(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else raw


def _as_choice(raw: Any) -> Any:
    return re.sub(r"[\s-]+", "_", raw.strip().lower()) if isinstance(raw, str) else raw


def _as_day(raw: Any) -> Any:
    """Drop the time of day, which is irrelevant for a due date."""
    try:
        return (
            datetime.datetime.fromisoformat(raw.strip()).date().isoformat()
            if isinstance(raw, str)
            else raw
        )
    except ValueError:
        return raw


def _as_number(raw: Any) -> Any:
    parsed = parse_number(raw.strip()) if isinstance(raw, str) else None
    return raw if parsed is None else parsed


# How a hand-written value is read, by type of field.
_NORMAL: dict[Type, Callable[[Any], Any]] = {
    "choice": _as_choice,
    "date": _as_day,
    "number": _as_number,
    "epic": lambda raw: _normal_ref("EPIC", raw) or raw,
}


def _digest(value: Any) -> str:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()
