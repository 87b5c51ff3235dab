"""Implement `get_resource`, which exposes the registry to clients that only call tools.

All data comes from `read`.
"""

import re
from typing import Any

from django.db import DatabaseError
from django.utils import timezone

from resources_app.addresses import uris
from resources_app.database.schema import refusal_of
from resources_app.errors import (
    BacklogError,
    Conflict,
    InvalidUri,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    ValidationFailed,
)
from resources_app.identity.roles import Actor
from resources_app.reading.by_address import read
from resources_app.reading.patterns import Entry
from resources_app.reading.registry import REGISTRY

_SHOW_ALL = "Call get_resource() with no arguments to see all available resources."
_CORRECT = "Correct the value named in details and send the request again."
_WELL_FORMED = re.compile(r"[\w.@%-]+", re.ASCII)


def get_resource(actor: Actor, uri: str | None) -> dict[str, Any]:
    if not uri:
        return _success("", "Available Resources", _discover(), "application/json")
    if problem := _template_problem(uri):
        return problem
    try:
        reading = read(actor, uri)
    except BacklogError as error:
        return _failure(actor, uri, error)
    except DatabaseError as error:
        refused = refusal_of(error)
        if refused is None:
            raise
        return _failure(actor, uri, refused)
    found = REGISTRY.match(uris.parse(uri))
    whole = reading.as_json()
    # Text stays text, as in `resources/read`: "10", not 10.
    data = (
        reading.text
        if reading.mime_type.startswith("text/") and "encoding" not in whole
        else whole["contents"]
    )
    answer = _success(uri, found[0].name if found else "", data, reading.mime_type)
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
    """Return a dedicated error for a pattern sent verbatim or with an empty variable."""
    entry = REGISTRY.match_loosely(*_split(uri))
    if entry is None:
        return None
    values = entry.match(_split(uri)[1]) or {}
    if missing := [
        name for name, value in values.items() if not value or re.fullmatch(r"\{\w+\}", value)
    ]:
        return _missing(entry, missing)
    malformed = [
        name
        for name, value in values.items()
        if not _is_free(entry, name) and not _WELL_FORMED.fullmatch(value)
    ]
    if malformed:
        return _malformed(
            entry, uri, f"{', '.join(malformed)}: letters, digits, '-', '_' and '.' are allowed."
        )
    return None


def _is_free(entry: Entry, name: str) -> bool:
    variable = entry.fill_of(name)
    return variable is not None and variable.is_free


def _split(uri: str) -> tuple[str, tuple[str, ...]]:
    """Return scheme and parts as written, even for a malformed URI."""
    scheme, _, rest = uri.partition("://")
    return scheme, tuple(rest.partition("#")[0].partition("?")[0].split("/"))


def _missing(entry: Entry, names: list[str]) -> dict[str, Any]:
    return _error(
        "MissingTemplateVariable",
        f"Template URI '{entry.pattern}' requires variable(s): {', '.join(names)}",
        "Template URIs must include values for all variables.",
        [
            f"Example: get_resource('{entry.example}')",
            *(
                f"Valid values of {one.name}: {', '.join(one.values)}"
                for one in entry.fills
                if one.name in names and one.values
            ),
            "Call get_resource() to see all templates and their variables.",
        ],
    )


def _malformed(entry: Entry, uri: str, details: str) -> dict[str, Any]:
    return _error(
        "InvalidTemplateVariable",
        f"Resource URI '{uri}' has an invalid value for '{entry.pattern}'.",
        details,
        [f"Example: get_resource('{entry.example}')", _SHOW_ALL],
    )


def _failure(actor: Actor, uri: str, error: BacklogError) -> dict[str, Any]:
    entry = REGISTRY.match_loosely(*_split(uri))
    if isinstance(error, InvalidUri) and entry and entry.is_template:
        return _malformed(entry, uri, error.message)
    if isinstance(error, InvalidUri):
        return _error(
            "InvalidURI",
            f"Resource URI '{uri}' not recognized.",
            f"The URI must match one of the available resource patterns. {error.message}",
            [
                _SHOW_ALL,
                "Verify the URI scheme and path are correct.",
                "Check for typos in the URI.",
            ],
        ) | {"valid_uris": [entry.pattern for entry in REGISTRY]}
    if isinstance(error, PermissionDenied | Unauthenticated) or (
        entry and entry.requires_admin and not actor.is_admin
    ):
        return _error(
            "Unauthorized",
            f"Resource '{uri}' requires admin privileges.",
            "This operation is restricted to administrators.",
            [
                "Contact your administrator to request elevated access.",
                "Check your current permissions using get_resource('auth://status').",
                "Use get_resource() to see resources available to all users.",
            ],
        )
    if isinstance(error, NotFound):
        return _error(
            "NotFound", error.message, f"Nothing answers to '{uri}'.", [error.suggestion, _SHOW_ALL]
        )
    if isinstance(error, ValidationFailed):
        return _error(
            "InvalidTemplateVariable", error.message, _allowed(error), [_CORRECT, _SHOW_ALL]
        )
    failed = f"Failed to retrieve resource '{uri}'."
    if isinstance(error, Conflict):
        return _error("ResourceExecutionError", failed, error.message, [error.suggestion])
    return _error(
        "ResourceExecutionError",
        failed,
        error.message,
        [
            "Retry the operation: this may have been a transient failure."
            if error.retryable
            else "Repeating it will not help: change the request or the configuration.",
            "Check authentication status using get_resource('auth://status').",
            "Contact your administrator if the problem persists.",
        ],
    )


def _allowed(error: ValidationFailed) -> str:
    field, known = error.details.get("field", "value"), error.details.get("allowed_values")
    return f"{field}: use one of {', '.join(map(str, known))}." if known else error.message


def _error(kind: str, message: str, details: str, actions: list[str]) -> dict[str, Any]:
    return {
        "success": False,
        "error": kind,
        "message": message,
        "details": details,
        "suggested_actions": list(filter(None, actions)),
    }
