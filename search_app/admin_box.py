"""Provide the admin's search box: the same search as everywhere, with links to admin pages."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from unfold.dataclasses import SearchResult

from resources_app.models import Resource
from search_app.search import MAX_QUERY, search_unified

KINDS = ("task", "epic", "resource")
MOST = 20


def find(request: HttpRequest, term: str) -> list[SearchResult]:
    hits = search_unified(request.user, term[:MAX_QUERY], types=KINDS, limit=MOST)["results"]
    files = Resource.objects.visible_to(request.user).filter(path__in=[hit["id"] for hit in hits])
    numbers = dict(files.values_list("path", "pk"))
    return [_line(hit, numbers.get(hit["id"])) for hit in hits]


def _line(hit: dict[str, Any], file: int | None) -> SearchResult:
    number = file or int(hit["id"].rpartition("-")[2])
    return SearchResult(
        title=f"{hit['id']} {hit['title']}",
        description=hit["snippet"]["text"],
        link=reverse(f"admin:resources_app_{hit['type']}_change", args=[number]),
        icon="arrow_forward",
    )
