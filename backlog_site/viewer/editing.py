"""Support the text editor with a preview and with suggestions for the word at the cursor."""

import re
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse, JsonResponse

from backlog_site.viewer.markdown import render
from backlog_site.viewer.queries import suggestions
from backlog_site.viewer.queries.suggestions import Suggestion
from backlog_site.viewer.shell import actor_of, page
from resources_app.identity.roles import Actor
from search_app.search import search_unified

MAX_TYPED = 200
_REF = re.compile(r"(?:TASK|EPIC)-\d*", re.IGNORECASE | re.ASCII)
# Prefix of a word → types to search.
_SEARCHED = {"#": ["task", "epic"], "mcp://": ["resource"], "ib://": ["ib_resource", "ib_folder"]}
_ICONS = {"ib_resource": "asset", "ib_folder": "folder"}


@page("POST")
def preview(request: HttpRequest) -> HttpResponse:
    return HttpResponse(render(request.POST.get("description", "")))


@page()
def suggest(request: HttpRequest) -> HttpResponse:
    found = _suggestions(actor_of(request), request.GET.get("q", "")[:MAX_TYPED])
    return JsonResponse({"suggestions": [asdict(one) for one in found]})


def _suggestions(actor: Actor, typed: str) -> list[Suggestion]:
    if typed.startswith("@"):
        return suggestions.people(typed[1:])
    if _REF.fullmatch(typed):
        return suggestions.items(actor, typed.upper())
    listed = suggestions.addresses(actor, typed) if typed.startswith("mcp://") else []
    return listed or _searched(actor, typed)


def _searched(actor: Actor, typed: str) -> list[Suggestion]:
    """Search by words, because users do not know all paths by heart."""
    mark = next((mark for mark in _SEARCHED if typed.startswith(mark)), "")
    words = typed.removeprefix(mark).rpartition("/")[2]
    if not mark or not words:
        return []
    hits = search_unified(actor.user, words, types=_SEARCHED[mark], limit=suggestions.MOST)[
        "results"
    ]
    return [
        Suggestion(
            hit["id"] if mark == "#" else hit["uri"],
            hit["title"],
            hit["status"] if hit["type"] == "task" else _ICONS.get(hit["type"], hit["type"]),
        )
        for hit in hits
    ]
