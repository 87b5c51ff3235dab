"""Find texts that mention an object."""

from typing import Any

from resources_app.identity.roles import Person
from search_app.search import search_unified

MOST = 12


def mentioned_in(user: Person, ref: str, besides: str = "") -> list[dict[str, Any]]:
    hits = search_unified(user, ref, limit=MOST)["results"]
    return [
        hit
        for hit in hits
        if ref != hit["id"] and besides != hit["uri"] and ref in (hit["snippet"]["text"] or "")
    ]
