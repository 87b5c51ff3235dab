"""The search box: titles to keep in the browser, and snippets from the server with what matched marked."""

import re
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from backlog_site.viewer.markdown import destination
from backlog_site.viewer.shell import page, show
from resources_app.pages import boards
from search_app.search import search_unified

TITLES = 3000
HITS = 12
_ICONS = {"ib_folder": "folder", "ib_resource": "asset"}
_WORD = re.compile(r"\w+")


@page()
def titles(request: HttpRequest) -> HttpResponse:
    found = boards.titles(request.user, TITLES)
    return JsonResponse({"items": [[line.ref, line.title, line.status] for line in found]})


@page()
def hits(request: HttpRequest) -> HttpResponse:
    words, kind = request.GET.get("q", "").strip(), request.GET.get("type", "")
    answer = search_unified(request.user, words, types=[kind] if kind else None, limit=HITS) if words else {}
    shown = [_hit(hit, words) for hit in answer.get("results", ())]
    return show(request, "viewer/_hits.html", {"words": words, "hits": shown, "total": answer.get("total", 0)})


def _hit(hit: dict[str, Any], words: str) -> dict[str, Any]:
    is_item = hit["type"] in {"task", "epic"}
    return {
        **hit,
        "url": f"/t/{hit['id']}/" if is_item else destination(hit["uri"]),
        "icon": hit["status"] if hit["type"] == "task" else _ICONS.get(hit["type"], hit["type"]),
        "title": marked(hit["title"], words),
        "snippet": marked(hit["snippet"]["text"] or "", words),
    }


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
