"""Implement `build_context`: a focus with its surroundings, each part as full as a token budget
allows, and a ledger of the rest.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import QuerySet

from resources_app.addresses.hidden_refs import Mask
from resources_app.addresses.intelligencebank import parent_uri
from resources_app.addresses.targets import visible_thing
from resources_app.addresses.uris import build, parse
from resources_app.errors import BacklogError, InvalidUri, NotFound, ValidationFailed
from resources_app.fields.declarations import parse_ref
from resources_app.history.documents import uri_of
from resources_app.identity.roles import Person
from resources_app.intelligencebank import browsing
from resources_app.models import Change, Comment, Epic, IBFolder, IBResource, Resource, Task
from resources_app.models.backlog import Item
from resources_app.reading.read_many import (
    BYTES_PER_TOKEN,
    NOTE,
    address_of,
    fitting,
    room_for,
    uri_for,
    weight,
)
from resources_app.reading.registry import target_of
from resources_app.reading.serializers import (
    change_json,
    comment_json,
    item_line,
    resource_json,
    whole_item_json,
)
from search_app.search import MAX_QUERY, search_unified

DEFAULT_TOKENS = 4000
MAX_DEPTH = 2
# The maximum read of each kind; the ledger says when there are more.
MOST = 20
LATEST = 10
EXCERPT = 400
# The share of the budget a long focus may take; its surroundings get the rest.
FOCUS_SHARE = 0.7
# Bytes reserved for the ledger, so that it can always say how much was left out.
LEDGER, LEDGER_SHARE, REMARK = 200, 0.1, 20
# Length of the query as repeated in the answer.
ECHO = 80
_MENTION = re.compile(
    r"\b(?:TASK|EPIC)-[0-9]{4,15}\b|mcp://backlog/(?:resources|artifacts)/[^\s)>\]\"'`]+"
    r"|ib://[A-Za-z0-9]{2,64}/(?:folders|resources?)/[0-9a-f]{32}"
)

Thing = Task | Epic | Resource
# Mirrored from IntelligenceBank.
Mirrored = IBFolder | IBResource


@dataclass
class Part:
    """Represent one part of the context.

    `forms` are its renderings, the fullest first; `chosen` is the one shown.
    """

    role: str
    uri: str
    forms: list[Any]
    chosen: int | None = field(default=None)

    def cost(self, form: int) -> int:
        shown = {
            "uri": self.uri,
            "role": self.role,
            "fidelity": FIDELITIES[form],
            "content": self.forms[form],
        }
        return weight(shown) + 1


FIDELITIES = ("full", "summary", "reference")


def build_context(
    user: Person,
    *,
    id: str | None = None,
    query: str | None = None,
    max_tokens: int = DEFAULT_TOKENS,
    depth: int = 1,
) -> dict[str, Any]:
    """Build the context.

    Deterministic and never over budget: the same database and user give the same parts in the same
    order.
    """
    _check(id, query, depth)
    room = room_for(max_tokens)
    focus, related = _focus(user, id, query)
    parts = _as_seen(user, _unique([_part("focus", focus), *_around(user, focus, depth), *related]))
    frame = _frame(focus, query, max_tokens)
    _choose(parts, room - weight(frame) - max(REMARK, min(LEDGER, int(room * LEDGER_SHARE))))
    return _answer(frame, parts, room)


def _check(id: str | None, query: str | None, depth: int) -> None:
    if bool(id) == bool(query):
        raise ValidationFailed(
            "Give either id or query.", field="id", allowed_values=["id", "query"]
        )
    if not 1 <= depth <= MAX_DEPTH:
        raise ValidationFailed(f"depth is 1 to {MAX_DEPTH}.", field="depth", value=depth)


def _focus(user: Person, id: str | None, query: str | None) -> tuple[Thing | Mirrored, list[Part]]:
    """Return the named object, or the best hit of the query with the other hits as parts."""
    if id:
        return _beside(user, address_of(user, id)), []
    types = ["task", "epic", "resource"]
    hits = [
        hit["uri"] for hit in search_unified(user, str(query), types=types, limit=MOST)["results"]
    ]
    if not hits:
        raise NotFound(
            "Nothing matches the query.", suggestion="Use fewer or other words.", query=query
        )
    return _thing(user, hits[0]), list(_parts_at(user, "found", hits[1:]))


def _thing(user: Person, uri: str) -> Thing:
    address = parse(uri)
    try:
        thing = visible_thing(user, target_of(address))
    except InvalidUri:
        thing = None  # for example a collection
    if not isinstance(thing, Task | Epic | Resource):
        raise ValidationFailed(
            "Context is made for tasks, epics, files and IntelligenceBank assets.",
            field="id",
            value=uri,
        )
    return thing


def _beside(user: Person, uri: str) -> Thing | Mirrored:
    return browsing.visible_at(user, uri) if uri.startswith("ib://") else _thing(user, uri)


def _around(user: Person, focus: Thing | Mirrored, depth: int) -> Iterator[Part]:
    if isinstance(focus, Item):
        yield from _family(user, focus)
    elif isinstance(focus, Mirrored):
        yield from _parts_at(user, "parent", [parent_uri(focus)])
    near = list(_neighbours(user, focus))
    yield from near
    if depth > 1:
        for part in near:
            if part.role in {"dependency", "reference"} and (thing := _existing(user, part.uri)):
                yield from () if isinstance(thing, Mirrored) else _neighbours(user, thing)
    if isinstance(focus, Item):
        yield from _said(user, focus)
    yield from _alike(user, focus)
    yield from _activity(user, focus)


def _family(user: Person, focus: Item) -> Iterator[Part]:
    """Yield parent, children and siblings."""
    tasks = (
        Task.objects.visible_to(user)
        .live()
        .select_related("assignee")
        .order_by("status", "-priority", "number")
    )
    if isinstance(focus, Epic):
        yield from _some("child", tasks.in_epic(focus.pk), f"{uri_of(focus)}/tasks")
    elif isinstance(focus, Task) and focus.epic_id:
        parent = (
            Epic.objects.visible_to(user)
            .select_related("assignee")
            .filter(pk=focus.epic_id)
            .first()
        )
        if parent:
            yield _part("parent", parent)
            siblings = tasks.in_epic(focus.epic_id).exclude(pk=focus.pk)
            yield from _some("sibling", siblings, f"{uri_of(parent)}/tasks")


def _neighbours(user: Person, focus: Thing | Mirrored) -> Iterator[Part]:
    """Yield dependencies and dependents, references and backlinks."""
    tasks = Task.objects.visible_to(user).select_related("assignee").order_by("number")
    if isinstance(focus, Task):
        yield from _some(
            "dependency", tasks.filter(dependent_rows__task=focus), f"{uri_of(focus)}/depends_on"
        )
        dependents = build("tasks", query=[("filter", f"depends_on:{focus.ref}")])
        yield from _some("dependent", tasks.filter(dependency_rows__needs=focus), dependents)
    named = _mentions(focus)
    yield from _parts_at(user, "reference", named[:MOST])
    if len(named) > MOST:
        yield _others(
            "reference",
            f"{uri_of(focus)}/description" if isinstance(focus, Item) else uri_of(focus),
        )
    hits = search_unified(user, focus.ref, limit=MOST)["results"]
    naming = [
        hit["uri"]
        for hit in hits
        if focus.ref in (hit["snippet"]["text"] or "") and hit["uri"] != uri_of(focus)
    ]
    yield from _parts_at(user, "referenced_by", naming)


def _mentions(focus: Thing | Mirrored) -> list[str]:
    text = (focus.content or "") if isinstance(focus, Resource) else focus.description
    links = " ".join(entry["url"] for entry in focus.references) if isinstance(focus, Item) else ""
    named = [uri_for(match[0].rstrip(".,;:")) for match in _MENTION.finditer(f"{text} {links}")]
    return [uri for uri in dict.fromkeys(named) if uri != uri_of(focus)]


def _parts_at(user: Person, role: str, uris: Sequence[str]) -> Iterator[Part]:
    """Yield the parts visible to the caller, in address order.

    Tasks and epics take one query each.
    """
    items: dict[str, Thing | None] = {}
    for model in (Task, Epic):
        numbers = {uri: number for uri in uris if (number := _number(uri, model.PREFIX))}
        rows = model.objects.visible_to(user).select_related("assignee")
        found = rows.in_bulk(list(numbers.values())) if numbers else {}
        items |= {uri: found.get(number) for uri, number in numbers.items()}
    for uri in uris:
        if thing := items[uri] if uri in items else _existing(user, uri):
            yield _part(role, thing)


def _number(uri: str, prefix: str) -> int | None:
    ref = uri.rpartition("/")[2]
    return parse_ref(ref, prefix) if uri == uri_for(ref) else None


def _existing(user: Person, uri: str) -> Thing | Mirrored | None:
    try:
        return _beside(user, uri)
    except BacklogError:
        return None  # a text may name a deleted or hidden object


def _said(user: Person, focus: Item) -> Iterator[Part]:
    comments = Comment.objects.visible_to(user).live().filter(**{focus.KIND: focus.pk})
    yield from _some(
        "comment",
        comments.select_related("task", "epic", "author").order_by("-pk"),
        f"{uri_of(focus)}/comments",
    )


def _alike(user: Person, focus: Thing | Mirrored) -> Iterator[Part]:
    title = focus.name if isinstance(focus, Mirrored) else focus.title
    hits = search_unified(user, title[:MAX_QUERY], limit=10)["results"] if title else []
    yield from _parts_at(
        user, "related", [hit["uri"] for hit in hits if hit["uri"] != uri_of(focus)]
    )


def _activity(user: Person, focus: Thing | Mirrored) -> Iterator[Part]:
    rows = Change.objects.visible_to(user).filter(kind=focus.KIND, object_id=focus.pk)
    latest = list(rows.select_related("author").order_by("-version")[: LATEST + 1])
    for change in latest[:LATEST]:
        shown = change_json(change)
        line = (
            f"v{change.version} {change.action} {', '.join(change.fields)} by"
            f" {shown['author'] or change.via}"
        )
        yield Part("change", f"{uri_of(focus)}?version={change.version}", [shown, line, line])
    if len(latest) > LATEST:
        yield _others("change", f"{uri_of(focus)}/versions")


def _some(role: str, rows: QuerySet[Any], uri: str) -> Iterator[Part]:
    """Yield the first rows; if there are more, also the address that lists them all."""
    found = list(rows[: MOST + 1])
    yield from (_part(role, thing) for thing in found[:MOST])
    if len(found) > MOST:
        yield _others(role, uri)


def _others(role: str, uri: str) -> Part:
    return Part(role, uri, ["There are more: read this address."] * len(FIDELITIES))


def _part(role: str, thing: Thing | Mirrored | Comment) -> Part:
    if isinstance(thing, Comment):
        said = comment_json(thing)
        line = f"{said['author']}: {_excerpt(thing.body, 80)}"
        return Part(role, said["uri"], [said, _excerpt(thing.body, EXCERPT), line])
    if isinstance(thing, Mirrored):
        full = browsing.describe_mirrored(thing)
        summary = {
            "name": full["name"],
            "excerpt": _excerpt(thing.description, EXCERPT),
            "untrusted": True,
        }
        return Part(
            role, uri_of(thing), [full, summary, f"{thing.KIND} {_excerpt(thing.name, 80)}"]
        )
    if isinstance(thing, Resource):
        text = thing.content or ""
        facts = resource_json(thing)
        summary = {"path": thing.path, "title": thing.title, "excerpt": _excerpt(text, EXCERPT)}
        return Part(
            role,
            uri_of(thing),
            [facts | {"content": text}, summary, f"{thing.path} {thing.title}".strip()],
        )
    shown = whole_item_json(thing)
    summary = item_line(shown) | {"excerpt": _excerpt(thing.description, EXCERPT)}
    full = {name: value for name, value in shown.items() if value not in (None, [], "")}
    return Part(
        role, uri_of(thing), [full, summary, f"{thing.ref} [{shown['status']}] {thing.title}"]
    )


def _as_seen(user: Person, parts: list[Part]) -> list[Part]:
    """Mask ids hidden from the user in every form of every part, with one query."""
    forms = [form for part in parts for form in part.forms if isinstance(form, dict)]
    shown = iter(Mask(user).all_shown(forms))
    for part in parts:
        part.forms = [next(shown) if isinstance(form, dict) else form for form in part.forms]
    return parts


def _excerpt(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _unique(parts: list[Part]) -> list[Part]:
    """Keep the first part of each address, which has the closest relation."""
    first: dict[str, Part] = {}
    for part in parts:
        first.setdefault(part.uri, part)
    return list(first.values())


def _choose(parts: list[Part], budget: int) -> None:
    """Choose the focus first, then a line for each other part while there is room, then fuller
    forms from the front.
    """
    focus, *others = parts
    left = budget - _choose_focus(focus, budget)
    for form in (2, 1, 0):
        for part in others:
            was = part.cost(part.chosen) if part.chosen is not None else 0
            if (part.chosen is not None or form == 2) and part.cost(form) - was <= left:
                left -= part.cost(form) - was
                part.chosen = form


def _choose_focus(focus: Part, budget: int) -> int:
    room = int(budget * FOCUS_SHARE)
    _cut(focus, room)
    focus.chosen = next((form for form in (0, 1) if focus.cost(form) <= room), 2)
    if focus.cost(focus.chosen) > budget:
        _shorten(focus, budget)
    return focus.cost(focus.chosen)


def _cut(focus: Part, room: int) -> None:
    """Truncate a text longer than the whole budget."""
    full = focus.forms[0]
    name = "content" if "content" in full else "description"
    text = full.get(name, "")
    keep = fitting(text, room - NOTE - (focus.cost(0) - weight(text)))
    if EXCERPT <= keep < len(text):
        note = {"field": name, "characters_left": len(text) - keep}
        focus.forms[0] = full | {name: text[:keep], "truncated": note}


def _shorten(focus: Part, budget: int) -> None:
    """Truncate the line that names the focus."""
    line = focus.forms[2]
    keep = fitting(line, budget - (focus.cost(2) - weight(line)) - len("…".encode()))
    if keep < 1:
        raise ValidationFailed(
            "max_tokens is too small to name this at all.",
            suggestion="Raise max_tokens.",
            field="max_tokens",
        )
    focus.forms[2] = line[:keep] + "…"


def _frame(focus: Thing | Mirrored, query: str | None, max_tokens: int) -> dict[str, Any]:
    return {
        "focus": uri_of(focus),
        "query": _excerpt(query, ECHO) if query else None,
        "max_tokens": max_tokens,
        "tokens": max_tokens,
        "parts": [],
        "left_out": [],
    }


def _answer(frame: dict[str, Any], parts: list[Part], room: int) -> dict[str, Any]:
    shown = [
        {
            "uri": part.uri,
            "role": part.role,
            "fidelity": FIDELITIES[part.chosen],
            "content": part.forms[part.chosen],
        }
        for part in parts
        if part.chosen is not None
    ]
    frame["parts"] = shown
    frame["left_out"] = _ledger(
        [part for part in parts if part.chosen is None], room - weight(frame) - REMARK
    )
    frame["tokens"] = math.ceil(weight(frame) / BYTES_PER_TOKEN)
    return frame


def _ledger(left_out: list[Part], room: int) -> list[dict[str, Any]]:
    """List what was left out by name while it fits, and the rest as a number, so that nothing is
    omitted silently.
    """
    named: list[dict[str, Any]] = []
    for part in left_out:
        entry = {"uri": part.uri, "role": part.role}
        room -= weight(entry) + 1
        if room < 0:
            return [*named, {"more": len(left_out) - len(named)}]
        named.append(entry)
    return named
