"""Parse JSON bodies strictly and within bounds.

Accepted values fit every database and can be sent back.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework.parsers import BaseParser

from backlog_site.api.limits import BodyTooLarge
from resources_app.errors import ValidationFailed

MAX_DEPTH = 32
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**63 - 1
_MAX_DIGITS = len(str(_MIN_INTEGER))
# NUL, which PostgreSQL rejects, and unpaired surrogates, which UTF-8 cannot encode. Both can only
# come as escapes.
_SUSPICIOUS_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_UNSAFE = re.compile("[\x00\ud800-\udfff]")


class BoundedJSONParser(BaseParser):
    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise BodyTooLarge(limit)
        return parse_json(body)


def parse_json(body: bytes) -> Any:
    """Return the parsed value. Raises ValidationFailed with the reason."""
    text = _decode(body)
    try:
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        raise _refusal(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column"
            f" {error.colno}.",
            line=error.lineno,
            column=error.colno,
        ) from None
    except RecursionError:
        raise _too_deep() from None
    _refuse_deep(value)
    if _SUSPICIOUS_ESCAPE.search(text):
        _refuse_unsafe_strings(value)
    return value


def _decode(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(
            f"The body is not valid UTF-8 at byte {error.start}.", position=error.start
        ) from None


def _integer(digits: str) -> int:
    # Check the length first: converting very long numbers takes quadratic time.
    if len(digits) > _MAX_DIGITS or not _MIN_INTEGER <= int(digits) <= _MAX_INTEGER:
        raise _refusal(
            f"The number {_shortened(digits)} does not fit in 64 bits.", value=_shortened(digits)
        )
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _refusal(f"The number {_shortened(digits)} is too large.", value=_shortened(digits))
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise _refusal(f"{name} is not JSON.", value=name)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        ((repeated, _),) = Counter(key for key, _ in pairs).most_common(1)
        name = _shortened(ascii(repeated))
        raise _refusal(f"The key {name} is there more than once in one object.", key=name)
    return value


def _refuse_deep(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_DEPTH):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, (dict, list))
        ]
    if level:
        raise _too_deep()


def _refuse_unsafe_strings(value: Any) -> None:
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending += [*node, *node.values()]
        elif isinstance(node, list):
            pending += node
        elif isinstance(node, str) and _UNSAFE.search(node):
            raise _refusal(
                "Strings must not contain NUL or unpaired surrogates.",
                value=_shortened(ascii(node)),
            )


def _too_deep() -> ValidationFailed:
    return _refusal(f"The body is nested deeper than {MAX_DEPTH} levels.", max_depth=MAX_DEPTH)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}…"


def _refusal(message: str, **details: Any) -> ValidationFailed:
    return ValidationFailed(
        message, suggestion="Correct the JSON body and send it again.", field="body", **details
    )
