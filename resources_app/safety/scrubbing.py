"""Mask secrets in text. Logs, job errors and everything shown from them use this one definition."""

import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from django.conf import settings

MASK = "[secret]"
# A shorter literal would also mask ordinary words.
MIN_LITERAL = 8

# Names that may end a longer one, as in DB_PASSWORD or x-csrftoken, and names that count only as
# whole words.
_ENDINGS = (
    r"password|passwd|secret|secret_key|(?:refresh|access|id|api|registration_access)[-_]?token|code_verifier"
    r"|session[-_]?(?:id|key)|csrfmiddlewaretoken|csrf[-_]?token|api[-_]?key|product[-_]?key|backlog_token"
)
_WORDS = r"code|sid|p60|p80|token|authorization"
_NAME = re.compile(rf"(?i)\w*(?:{_ENDINGS})|sid|p60|p80|authorization|cookie|set-cookie")
# Every repetition is bounded or starts at a word, so that hostile text is processed in linear time.
_PATTERNS = (
    # Our own tokens by prefix, and IntelligenceBank login tokens.
    re.compile(r"\bb[lor]_[A-Za-z0-9_-]{16,}"),
    re.compile(r"\bSFMyNTY\.[\w.-]+"),
    re.compile(r"(?i)(\b(?:bearer|basic)\s{1,8})(?!\[secret\])[^\s'\",]{6,}"),
    # user:password@ in the URL of a server
    re.compile(r"(://[^\s/:@]{0,200}:)[^\s/]{1,500}(?=@)"),
    # name=value, "name": "value", name='value', (b"name", b"value")
    re.compile(
        rf"""(?ix)( (?<!\w) (?:\w*(?:{_ENDINGS})|{_WORDS})
            (?: ['"]?\s{{0,8}}[=:]\s{{0,8}} | ['"],\s{{0,8}}b?(?=['"]) )
            (?:(?:bearer|basic)\s{{1,8}})? )
            (?: b?(?P<quote>['"])(?:\\.|(?!(?P=quote))[^\\]){{1,4096}}
                | (?!\[secret\]|(?:bearer|basic)\s)[^\s'"&,;}})]+ )""",
    ),
)


def scrub_text(text: str) -> str:
    for literal in _literals():
        text = text.replace(literal, MASK)
    for pattern in _PATTERNS:
        text = pattern.sub(_masked, text)
    return text


def names_a_secret(name: str) -> bool:
    """Return whether any value under this name is a secret."""
    return _NAME.fullmatch(name) is not None


def _masked(found: re.Match[str]) -> str:
    kept = found[1] if found.re.groups else ""
    quote = found["quote"] if "quote" in found.re.groupindex else None
    return f"{kept}{quote or ''}{MASK}"


def _literals() -> Iterator[str]:
    """Yield the secrets this process was configured with, to be masked anywhere in a text."""
    configured = (
        settings.SECRET_KEY,
        *settings.SECRET_KEY_FALLBACKS,
        settings.MCP_STDIO_TOKEN,
        str(settings.DATABASES["default"].get("PASSWORD") or ""),
        *_passwords_in(settings.REDIS_URL),
    )
    yield from (secret for secret in configured if secret and len(secret) >= MIN_LITERAL)


@lru_cache(maxsize=8)
def _passwords_in(url: str) -> tuple[str, ...]:
    """Return the password as written in the URL, and decoded."""
    try:
        written = urlsplit(url).password or ""
    except ValueError:
        return ()
    return tuple(dict.fromkeys((written, unquote(written))))
