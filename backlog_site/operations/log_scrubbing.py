"""Keep tokens, passwords and codes out of the logs, anywhere in an event or a traceback."""

from collections.abc import MutableMapping
from typing import Any

from resources_app.safety.scrubbing import MASK, names_a_secret, scrub_text


def scrub(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Scrub an event, as structlog's last processor before rendering, when a traceback is already
    text.
    """
    return {key: _scrubbed(value, key) for key, value in event.items()}


def _scrubbed(value: Any, name: Any = "") -> Any:
    if value and names_a_secret(str(name)):
        return MASK
    if isinstance(value, str):
        return scrub_text(value)
    if isinstance(value, dict):
        return {key: _scrubbed(inner, key) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_scrubbed(inner) for inner in value]
    return value if value is None or isinstance(value, int | float) else scrub_text(str(value))
