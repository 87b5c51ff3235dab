"""`get_resource`: the registry for clients that only call tools. Its data is what `read` gives, nothing of its own."""

import re
from typing import Any

from django.utils import timezone

from resources_app import uris
from resources_app.access import Actor
from resources_app.errors import BacklogError, InvalidUri, NotFound, PermissionDenied, Unauthenticated
from resources_app.patterns import Entry
from resources_app.reading import read
from resources_app.registry import REGISTRY

_SHOW_ALL = "Call get_resource without a URI to see every address."


def get_resource(actor: Actor, uri: str | None) -> dict[str, Any]:
    if not uri:
        return _success("", "Available Resources", _discover(), "application/json")
    if problem := _template_problem(uri):
        return problem
    try:
        reading = read(actor, uri)
    except BacklogError as error:
        return _failure(actor, uri, error)
    found = REGISTRY.match(uris.parse(uri))
    whole = reading.as_json()
    answer = _success(uri, found[0].name if found else "", whole["contents"], reading.mime_type)
    return answer | {"encoding": whole["encoding"]} if "encoding" in whole else answer


def _discover() -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for entry in REGISTRY:
        grouped.setdefault(entry.category, []).append(_described(entry))
    return grouped


def _described(entry: Entry) -> dict[str, Any]:
    return {
        "uri": entry.pattern,
        "name": entry.name,
        "description": entry.description,
        "is_template": entry.is_template,
        "template_variables": list(entry.variables),
        "requires_admin": entry.requires_admin,
        "category": entry.category,
    }


def _success(uri: str, name: str, contents: Any, mime_type: str) -> dict[str, Any]:
    return {
        "success": True,
        "uri": uri,
        "resource_name": name,
        "data": contents,
        "timestamp": timezone.now().isoformat(),
        "mime_type": mime_type,
    }


def _template_problem(uri: str) -> dict[str, Any] | None:
    """A pattern sent as it stands, or with an empty variable, is a slip that deserves its own answer."""
    if re.search(r"\{\w+\}", uri):
        return _error(
            "MissingTemplateVariable",
            "The URI still has a {variable} in it.",
            f"Replace the part in braces: {uri}",
            ["Put an id or a path in place of the braces, as in mcp://backlog/tasks/TASK-0001.", _SHOW_ALL],
        )
    if "{" in uri or "}" in uri:
        return _error(
            "InvalidTemplateVariable",
            "A variable of the URI is empty or malformed.",
            uri,
            ["Use letters, digits, hyphens and underscores.", _SHOW_ALL],
        )
    if uri.endswith("/") and (pattern := _template_after(uri)):
        return _error(
            "MissingTemplateVariable",
            "The URI ends where a variable is expected.",
            f"The pattern is {pattern}",
            [f"Complete it as in {pattern}.", _SHOW_ALL],
        )
    return None


def _template_after(prefix: str) -> str | None:
    patterns = [entry.pattern for entry in REGISTRY]
    return next((pattern for pattern in patterns if pattern.startswith(prefix + "{")), None)


def _failure(actor: Actor, uri: str, error: BacklogError) -> dict[str, Any]:
    actions = [error.suggestion] if error.suggestion else []
    if isinstance(error, InvalidUri):
        patterns = [entry.pattern for entry in REGISTRY]
        return _error("InvalidURI", error.message, uri, [*actions, _SHOW_ALL]) | {"valid_uris": patterns}
    if isinstance(error, PermissionDenied | Unauthenticated) or _is_for_admins(actor, uri):
        return _error(
            "Unauthorized",
            "This resource requires admin privileges.",
            f"Resource {uri!r} is restricted.",
            ["Ask an administrator for access.", "Read auth://status to see who you are.", _SHOW_ALL],
        )
    if isinstance(error, NotFound):
        return _error("NotFound", error.message, uri, [*actions, _SHOW_ALL])
    if error.code == "validation_failed":
        return _error("InvalidTemplateVariable", error.message, uri, [*actions, _SHOW_ALL])
    return _error("ResourceExecutionError", error.message, uri, [*actions, "Try again in a few seconds."])


def _is_for_admins(actor: Actor, uri: str) -> bool:
    found = REGISTRY.match(uris.parse(uri))
    return found is not None and found[0].requires_admin and not actor.is_admin


def _error(kind: str, message: str, details: str, actions: list[str]) -> dict[str, Any]:
    return {"success": False, "error": kind, "message": message, "details": details, "suggested_actions": actions}
