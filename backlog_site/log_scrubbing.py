"""Keeps secrets out of the logs: tokens, passwords and codes, wherever in an event or a traceback they stand."""

import re
from collections.abc import MutableMapping
from typing import Any

MASK = "[secret]"
_SECRETS = (
    # our own tokens, by their prefix
    re.compile(r"\bb[lor]_[A-Za-z0-9_-]{16,}"),
    re.compile(r"(?i)(?<=\bbearer )[^\s'\",]+"),
    re.compile(r"(?i)(?<=\bbasic )[A-Za-z0-9+/=]{8,}"),
    # user:password@ in an address of a server
    re.compile(r"(?<=://)[^\s/:@]*:[^\s@/]+(?=@)"),
    # name=value, "name": "value", name='value'
    re.compile(
        r"(?i)(?<!\w)((?:\w*(?:password|secret|secret_key|refresh_token|access_token|code_verifier|sessionid"
        r"|csrfmiddlewaretoken|csrftoken)|code)['\"]?\s*[=:]\s*['\"]?)[^\s'\"&,;})]+"
    ),
)


def scrub(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: the last before rendering, when a traceback is text already."""
    return {key: _scrubbed(value) for key, value in event.items()}


def scrub_text(text: str) -> str:
    for secret in _SECRETS:
        text = secret.sub(lambda found: (found[1] if found.re.groups else "") + MASK, text)
    return text


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {key: _scrubbed(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(inner) for inner in value]
    return value if value is None or isinstance(value, int | float) else scrub_text(str(value))
