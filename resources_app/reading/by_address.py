"""Implement `read(actor, uri)`, the single entry point for REST, MCP, the viewer and commands."""

from dataclasses import replace

from resources_app.addresses import uris
from resources_app.errors import InvalidUri, NotFound, ValidationFailed
from resources_app.identity.roles import Actor, may_read
from resources_app.reading.registry import REGISTRY
from resources_app.reading.result import Reading, ReadRequest


def read(actor: Actor, uri: str) -> Reading:
    """Read a URI. Absent and invisible resources get the same response."""
    parsed = uris.parse(uri)
    found = REGISTRY.match(parsed)
    if found is None:
        raise InvalidUri(
            "No resource answers to this URI.", uri=uri, patterns=REGISTRY.patterns_like(parsed)
        )
    entry, variables = found
    if entry.requires_admin and not actor.is_admin:
        raise NotFound("There is nothing at this URI (or it is not visible to you).", uri=uri)
    if not entry.is_public and not may_read(actor.user):
        raise NotFound("There is nothing at this URI (or it is not visible to you).", uri=uri)
    _refuse_unknown_parameters(
        parsed, (*entry.parameters, *(["version"] if entry.versioned else []))
    )
    if parsed.version and not entry.versioned:
        raise InvalidUri(
            "This URI has no versions.", uri=uri, patterns=REGISTRY.versioned_patterns()
        )
    reading = entry.reader(ReadRequest(actor, parsed, uri, variables))
    # A version is immutable.
    is_fixed = entry.watch is None or parsed.version is not None
    return replace(reading, subscribable=reading.subscribable and not is_fixed)


def _refuse_unknown_parameters(parsed: uris.Uri, known: tuple[str, ...]) -> None:
    for name, value in parsed.query:
        if name not in known:
            raise ValidationFailed(
                f"Unknown parameter {name!r}.",
                field=name,
                value=value,
                uri=str(parsed),
                allowed_values=list(known),
            )
