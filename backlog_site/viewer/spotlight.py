"""The search box: titles to keep in the browser, and snippets from the server with what matched marked."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from backlog_site.viewer.markdown import destination
from backlog_site.viewer.shell import page, person_of, show
from backlog_site.viewer.words import read_words
from resources_app.pages import boards
from resources_app.pages.cards import Card
from search_app.search import search_unified

TITLES = 3000
HITS = 12
_ICONS = {"ib_folder": "folder", "ib_resource": "asset"}
# Filters that can be typed here → what the search calls them.
_FILTERS = {"status": "status", "label": "label", "assignee": "assignee", "epic_id": "parent_id"}
_WORD = re.compile(r"\w+")


@page()
def titles(request: HttpRequest) -> HttpResponse:
    found = boards.titles(request.user, TITLES)
    return JsonResponse({"items": [[line.ref, line.title, line.status] for line in found]})


@page()
def hits(request: HttpRequest) -> HttpResponse:
    typed, kind = request.GET.get("q", "").strip(), request.GET.get("type", "")
    pairs, words = read_words(typed, person_of(request).username, _FILTERS)
    answer = _search(person_of(request), words, kind, pairs) if typed else {}
    shown = [_hit(hit, words) for hit in answer.get("results", ())]
    return show(request, "viewer/_hits.html", {"words": typed, "hits": shown, "total": answer.get("total", 0)})


def _search(user: User, words: str, kind: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Filters alone list tasks, the last changed first; beside words they narrow the search."""
    if not words:
        section = boards.more(user, pairs, "none", "", "", HITS)
        return {"results": [_listed(card) for card in section.cards], "total": section.total}
    given: dict[str, Any] = {"types": [kind]} if kind else {}
    for name, value in pairs:
        several = given.get(name, []) if name in {"status", "label"} else None
        given[_FILTERS[name]] = value if several is None else [*several, value]
    return search_unified(user, words, limit=HITS, **given)


def _listed(card: Card) -> dict[str, Any]:
    return {"type": "task", "id": card.ref, "title": card.title, "status": card.status, "snippet": {"text": ""}}


def _hit(hit: dict[str, Any], words: str) -> dict[str, Any]:
    is_item = hit["type"] in {"task", "epic"}
    return {
        **hit,
        "url": f"/t/{hit['id']}/" if is_item else destination(hit["uri"]),
        "icon": hit["status"] if hit["type"] == "task" else _ICONS.get(hit["type"], hit["type"]),
        "title": marked(hit["title"], words),
        "snippet": marked(_more_than(hit["title"], hit["snippet"]["text"] or ""), words),
    }


def _more_than(title: str, snippet: str) -> str:
    """A snippet that only repeats the title says nothing."""
    return "" if snippet.strip() == title.strip() else snippet


def marked(text: str, words: str) -> SafeString:
    """Each word of the text that begins like one that was asked for."""
    wanted = tuple(word.casefold()[:40] for word in _WORD.findall(words))
    parts: list[str] = []
    position = 0
    for match in _WORD.finditer(text):
        if wanted and match[0].casefold().startswith(wanted):
            parts += (escape(text[position : match.start()]), "<mark>", escape(match[0]), "</mark>")
            position = match.end()
    return mark_safe("".join([*parts, escape(text[position:])]))  # noqa: S308  every part is escaped
