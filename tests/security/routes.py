"""List every route with its methods from the resolver, so that a new route is automatically in the
matrix.
"""

import re
from collections.abc import Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Values for the variables in routes.
EXAMPLES = {
    "pk": "{pk}",
    "path": "docs/a.md",
    "client_id": "Unknown1",
    "object_id": "1",
    "app_label": "resources_app",
    "content_type_id": "1",
    "url": "nothing/",
    "extra": "1",
    "ref": "TASK-0001",
    "number": "1",
    "ib_id": "0" * 32,
    "area": "resources",
    "folder_id": "root",
}


def routes() -> dict[str, set[str]]:
    """Return the methods of each route's view."""
    return {route: _methods(pattern.callback) for route, pattern in _walk(get_resolver(), "/")}


def _walk(resolver: Any, prefix: str) -> Iterator[tuple[str, URLPattern]]:
    for entry in resolver.url_patterns:
        route = prefix + _readable(str(entry.pattern))
        if isinstance(entry, URLResolver):
            yield from _walk(entry, route)
        else:
            yield route, entry


def _readable(pattern: str) -> str:
    """Convert `^tasks/(?P<pk>[^/]+)/$` and `tasks/<str:pk>/` to tasks/<pk>/."""
    pattern = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"<\1>", pattern)
    pattern = re.sub(r"<\w+:(\w+)>", r"<\1>", pattern)
    return pattern.removeprefix("^").removesuffix("$").removesuffix("\\Z").replace("\\.", ".")


def _methods(callback: Any) -> set[str]:
    if actions := getattr(callback, "actions", None):
        return {method.upper() for method in actions} & set(METHODS)
    view = getattr(callback, "cls", None) or getattr(callback, "view_class", None)
    if view is None:
        return {"GET", "POST"}
    return {method for method in METHODS if hasattr(view, method.lower())}
