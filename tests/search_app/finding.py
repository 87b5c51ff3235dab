"""Share what the search tests do repeatedly."""

from typing import Any

from django.contrib.auth.models import User

from search_app.search import search_unified


def found(user: User, query: str, **options: Any) -> list[str]:
    return [result["id"] for result in search_unified(user, query, **options)["results"]]


def only(user: User, query: str, **options: Any) -> dict[str, Any]:
    [result] = search_unified(user, query, **options)["results"]
    return dict(result)
