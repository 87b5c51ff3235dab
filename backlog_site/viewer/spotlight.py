"""Serve the search box: titles to cache in the browser, and snippets from the server with matches
highlighted.
"""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from backlog_site.viewer.markdown import destination
from backlog_site.viewer.queries import boards
from backlog_site.viewer.shell import actor_of, page, person_of, show
from backlog_site.viewer.words import read_words
from resources_app.addresses.uris import build
from resources_app.identity.roles import Actor
from resources_app.querying.named_values import UnknownName
from resources_app.reading.by_address import read
from search_app.search import search_unified

TITLES = 3000
HITS = 12
_ICONS = {"ib_folder": "folder", "ib_resource": "asset"}
# Filters that can be typed here → parameters of the search.
_FILTERS = {"status": "status", "label": "label", "assignee": "assignee", "epic_id": "parent_id"}
_COLLECTIONS = {"": "tasks", "task": "tasks", "epic": "epics"}
_WORD = re.compile(r"\w+")


@page()
def titles(request: HttpRequest) -> HttpResponse:
    found = boards.titles(request.user, TITLES)
    return JsonResponse({"items": [[line.ref, line.title, line.status] for line in found]})


@page()
def hits(request: HttpRequest) -> HttpResponse:
    typed, kind = request.GET.get("q", "").strip(), request.GET.get("type", "")
    pairs, words = read_words(typed, person_of(request).username, _FILTERS)
    try:
        answer = _found(actor_of(request), words, kind, pairs) if typed else {}
    except UnknownName:
        answer = {}  # the id of an epic is not finished yet
    counts = {name: answer.get(name, 0) for name in ("total", "semantic_total")}
    shown = [_hit(hit, words) for hit in answer.get("results", ())]
    return show(request, "viewer/_hits.html", {"words": typed, "hits": shown, **counts})


def _found(actor: Actor, words: str, kind: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Search with filters beside words.

    Filters alone query the collection, because a search needs words.
    """
    if not words:
        return _listed(actor, kind, pairs)
    given: dict[str, Any] = {"types": [kind]} if kind else {}
    for name, value in pairs:
        several = given.get(name, []) if name in {"status", "label"} else None
        given[_FILTERS[name]] = value if several is None else [*several, value]
    return search_unified(actor.user, words, limit=HITS, **given)


def _listed(actor: Actor, kind: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """List the last changed first.

    Only tasks and epics have these fields, and an epic is in no epic.
    """
    collection = _COLLECTIONS.get(kind)
    if not collection or (kind == "epic" and any(name == "epic_id" for name, _ in pairs)):
        return {}
    answer: dict[str, Any] = read(
        actor, build(collection, query=[*pairs, ("limit", str(HITS))])
    ).contents
    return answer


def _hit(hit: dict[str, Any], words: str) -> dict[str, Any]:
    is_item = hit["type"] in {"task", "epic"}
    return {
        **hit,
        "url": f"/t/{hit['id']}/" if is_item else destination(hit["uri"]),
        "icon": hit["status"] if hit["type"] == "task" else _ICONS.get(hit["type"], hit["type"]),
        "title": marked(hit["title"], words),
        "snippet": marked(_more_than(hit["title"], hit["snippet"]["text"] or ""), words)
        if "snippet" in hit
        else "",
    }


def _more_than(title: str, snippet: str) -> str:
    """Return the snippet unless it only repeats the title."""
    return "" if snippet.strip() == title.strip() else snippet


def marked(text: str, words: str) -> SafeString:
    """Highlight each word of the text that begins like a query word."""
    wanted = tuple(word.casefold()[:40] for word in _WORD.findall(words))
    parts: list[str] = []
    position = 0
    for match in _WORD.finditer(text):
        if wanted and match[0].casefold().startswith(wanted):
            parts += (escape(text[position : match.start()]), "<mark>", escape(match[0]), "</mark>")
            position = match.end()
    return mark_safe("".join([*parts, escape(text[position:])]))  # noqa: S308  every part is escaped
