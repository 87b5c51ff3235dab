"""`build_context`: a thing with what surrounds it, each part as full as a token budget allows, and a ledger of the rest."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from resources_app.access import Person
from resources_app.bundles import CHARACTERS_PER_TOKEN, MAX_TOKENS, MIN_TOKENS, uri_for
from resources_app.documents import uri_of
from resources_app.errors import BacklogError, NotFound, ValidationFailed
from resources_app.intelligencebank import browsing
from resources_app.models import Change, Comment, Epic, IBFolder, IBResource, Resource, Task
from resources_app.models.backlog import Item
from resources_app.serializers import change_json, comment_json, item_json, item_line, resource_json
from resources_app.targets import target_of, visible_thing
from resources_app.uris import parse
from search_app.search import search_unified

DEFAULT_TOKENS = 4000
MAX_DEPTH = 2
# How many of each kind are looked at; the ledger says when there are more.
MOST = 20
EXCERPT = 400
# A long thing may take this much; what surrounds it gets the rest.
FOCUS_SHARE = 0.7
# Characters kept free for the ledger: it can always at least say how much was left out.
LEDGER = 200
_MENTION = re.compile(
    r"\b(?:TASK|EPIC)-[0-9]{4,15}\b|mcp://backlog/(?:resources|artifacts)/[^\s)>\]\"'`]+"
    r"|ib://[A-Za-z0-9]{2,64}/(?:folders|resources?)/[0-9a-f]{32}"
)

Thing = Task | Epic | Resource
# What can stand beside a thing; a context is not made of it.
Mirrored = IBFolder | IBResource


@dataclass
class Part:
    """One thing in the context. `forms` are its renderings, the fullest first; `chosen` says which one is shown."""

    role: str
    uri: str
    forms: list[Any]
    chosen: int | None = field(default=None)

    def cost(self, form: int) -> int:
        shown = {"uri": self.uri, "role": self.role, "fidelity": FIDELITIES[form], "content": self.forms[form]}
        return len(json.dumps(shown, ensure_ascii=False)) + 2


FIDELITIES = ("full", "summary", "reference")


def build_context(
    user: Person, *, id: str | None = None, query: str | None = None, max_tokens: int = DEFAULT_TOKENS, depth: int = 1
) -> dict[str, Any]:
    """Deterministic, and never over budget: the same things in the same order for the same database and person."""
    _check(id, query, max_tokens, depth)
    focus, related = _focus(user, id, query)
    parts = _unique([_part("focus", focus), *_around(user, focus, depth), *related])
    frame = _frame(focus, query, max_tokens)
    _choose(parts, max_tokens * CHARACTERS_PER_TOKEN - len(json.dumps(frame, ensure_ascii=False)) - LEDGER)
    return _answer(frame, parts, max_tokens)


def _check(id: str | None, query: str | None, max_tokens: int, depth: int) -> None:
    if bool(id) == bool(query):
        raise ValidationFailed("Give either id or query.", field="id", allowed_values=["id", "query"])
    if not MIN_TOKENS <= max_tokens <= MAX_TOKENS:
        raise ValidationFailed(f"max_tokens is {MIN_TOKENS} to {MAX_TOKENS}.", field="max_tokens", value=max_tokens)
    if not 1 <= depth <= MAX_DEPTH:
        raise ValidationFailed(f"depth is 1 to {MAX_DEPTH}.", field="depth", value=depth)


def _focus(user: Person, id: str | None, query: str | None) -> tuple[Thing, list[Part]]:
    """The named thing; or the best hit of the query, with the other hits beside it."""
    if id:
        return _thing(user, uri_for(id)), []
    types = ["task", "epic", "resource"]
    hits = [hit["uri"] for hit in search_unified(user, str(query), types=types, limit=MOST)["results"]]
    if not hits:
        raise NotFound("Nothing matches the query.", suggestion="Use fewer or other words.", query=query)
    return _thing(user, hits[0]), [_part("found", _thing(user, uri)) for uri in hits[1:]]


def _thing(user: Person, uri: str) -> Thing:
    thing = visible_thing(user, target_of(parse(uri)))
    if not isinstance(thing, Task | Epic | Resource):
        raise ValidationFailed("Context is made for tasks, epics and files.", field="id", value=uri)
    return thing


def _beside(user: Person, uri: str) -> Thing | Mirrored:
    return browsing.visible_at(user, uri) if uri.startswith("ib://") else _thing(user, uri)


def _around(user: Person, focus: Thing, depth: int) -> Iterator[Part]:
    if isinstance(focus, Item):
        yield from _family(user, focus)
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
    """Parent, children, siblings."""
    tasks = Task.objects.visible_to(user).live().select_related("assignee").order_by("status", "-priority", "number")
    if isinstance(focus, Epic):
        yield from (_part("child", task) for task in tasks.in_epic(focus.pk)[:MOST])
    elif isinstance(focus, Task) and focus.epic_id:
        parent = Epic.objects.visible_to(user).select_related("assignee").filter(pk=focus.epic_id).first()
        if parent:
            yield _part("parent", parent)
        yield from (_part("sibling", task) for task in tasks.in_epic(focus.epic_id).exclude(pk=focus.pk)[:MOST])


def _neighbours(user: Person, focus: Thing) -> Iterator[Part]:
    """What it depends on and what depends on it; what it names and what names it."""
    tasks = Task.objects.visible_to(user).select_related("assignee").order_by("number")
    if isinstance(focus, Task):
        yield from (_part("dependency", task) for task in tasks.filter(dependent_rows__task=focus)[:MOST])
        yield from (_part("dependent", task) for task in tasks.filter(dependency_rows__needs=focus)[:MOST])
    for uri in _mentions(focus)[:MOST]:
        if thing := _existing(user, uri):
            yield _part("reference", thing)
    for hit in search_unified(user, focus.ref, limit=MOST)["results"]:
        if focus.ref in (hit["snippet"]["text"] or "") and hit["uri"] != uri_of(focus):
            yield _part("referenced_by", _beside(user, hit["uri"]))


def _mentions(focus: Thing) -> list[str]:
    text = focus.description if isinstance(focus, Item) else focus.content or ""
    links = " ".join(entry["url"] for entry in focus.references) if isinstance(focus, Item) else ""
    named = [uri_for(match[0].rstrip(".,;:")) for match in _MENTION.finditer(f"{text} {links}")]
    return [uri for uri in dict.fromkeys(named) if uri != uri_of(focus)]


def _existing(user: Person, uri: str) -> Thing | Mirrored | None:
    try:
        return _beside(user, uri)
    except BacklogError:
        return None  # a text may name what is gone or hidden


def _said(user: Person, focus: Item) -> Iterator[Part]:
    comments = Comment.objects.visible_to(user).live().filter(**{focus.KIND: focus.pk})
    for comment in comments.select_related("task", "epic", "author").order_by("-pk")[:MOST]:
        shown = comment_json(comment)
        line = f"{shown['author']}: {_excerpt(comment.body, 80)}"
        yield Part("comment", shown["uri"], [shown, _excerpt(comment.body, EXCERPT), line])


def _alike(user: Person, focus: Thing) -> Iterator[Part]:
    hits = search_unified(user, focus.title, limit=10)["results"] if focus.title else []
    yield from (_part("related", _beside(user, hit["uri"])) for hit in hits if hit["uri"] != uri_of(focus))


def _activity(user: Person, focus: Thing) -> Iterator[Part]:
    rows = Change.objects.visible_to(user).filter(kind=focus.KIND, object_id=focus.pk)
    for change in rows.select_related("author").order_by("-version")[:10]:
        shown = change_json(change)
        line = f"v{change.version} {change.action} {', '.join(change.fields)} by {shown['author'] or change.via}"
        yield Part("change", f"{uri_of(focus)}?version={change.version}", [shown, line, line])


def _part(role: str, thing: Thing | Mirrored) -> Part:
    if isinstance(thing, Mirrored):
        full = browsing.describe_mirrored(thing)
        summary = {"name": full["name"], "excerpt": _excerpt(thing.description, EXCERPT), "untrusted": True}
        return Part(role, uri_of(thing), [full, summary, f"{thing.KIND} {_excerpt(thing.name, 80)}"])
    if isinstance(thing, Resource):
        text = thing.content or ""
        facts = resource_json(thing)
        summary = {"path": thing.path, "title": thing.title, "excerpt": _excerpt(text, EXCERPT)}
        return Part(role, uri_of(thing), [facts | {"content": text}, summary, f"{thing.path} {thing.title}".strip()])
    shown = item_json(thing)
    summary = item_line(shown) | {"excerpt": _excerpt(thing.description, EXCERPT)}
    full = {name: value for name, value in shown.items() if value not in (None, [], "")}
    return Part(role, uri_of(thing), [full, summary, f"{thing.ref} [{shown['status']}] {thing.title}"])


def _excerpt(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _unique(parts: list[Part]) -> list[Part]:
    """A thing stands where it was met first: the closer relation."""
    return list({part.uri: part for part in reversed(parts)}.values())[::-1]


def _choose(parts: list[Part], budget: int) -> None:
    """The thing itself first; then a line for each of the others while there is room, then fuller forms from the front."""
    focus, *others = parts
    left = budget - _choose_focus(focus, int(budget * FOCUS_SHARE))
    for form in (2, 1, 0):
        for part in others:
            was = part.cost(part.chosen) if part.chosen is not None else 0
            if (part.chosen is not None or form == 2) and part.cost(form) - was <= left:
                left -= part.cost(form) - was
                part.chosen = form


def _choose_focus(focus: Part, room: int) -> int:
    _cut(focus, room)
    focus.chosen = next((form for form in (0, 1) if focus.cost(form) <= room), 2)
    return focus.cost(focus.chosen)


def _cut(focus: Part, room: int) -> None:
    """A text longer than the whole budget is given as far as it fits."""
    full = focus.forms[0]
    name = "content" if "content" in full else "description"
    text, excess = full.get(name, ""), focus.cost(0) - room
    # JSON may need two characters for one; the note costs some as well.
    keep = (len(text) - excess - 100) // 2 if excess > 0 else len(text)
    if keep < EXCERPT or keep == len(text):
        return
    note = {"field": name, "characters_left": len(text) - keep}
    focus.forms[0] = full | {name: text[:keep], "truncated": note}


def _frame(focus: Thing, query: str | None, max_tokens: int) -> dict[str, Any]:
    return {
        "focus": uri_of(focus),
        "query": query,
        "max_tokens": max_tokens,
        "tokens": max_tokens,
        "parts": [],
        "left_out": [],
    }


def _answer(frame: dict[str, Any], parts: list[Part], max_tokens: int) -> dict[str, Any]:
    shown = [
        {"uri": part.uri, "role": part.role, "fidelity": FIDELITIES[part.chosen], "content": part.forms[part.chosen]}
        for part in parts
        if part.chosen is not None
    ]
    frame["parts"] = shown
    frame["left_out"] = _ledger([part for part in parts if part.chosen is None], frame, max_tokens)
    frame["tokens"] = -(-len(json.dumps(frame, ensure_ascii=False)) // CHARACTERS_PER_TOKEN)
    return frame


def _ledger(left_out: list[Part], frame: dict[str, Any], max_tokens: int) -> list[dict[str, Any]]:
    """Each by name while that fits; the rest as a number, so that nothing is missing without a word."""
    room = max_tokens * CHARACTERS_PER_TOKEN - len(json.dumps(frame, ensure_ascii=False)) - 60
    named: list[dict[str, Any]] = []
    for part in left_out:
        entry = {"uri": part.uri, "role": part.role}
        room -= len(json.dumps(entry)) + 2
        if room < 0:
            return [*named, {"more": len(left_out) - len(named)}]
        named.append(entry)
    return named
