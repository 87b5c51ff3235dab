"""Find and replace links to files of one machine in a text. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

# Ends at whitespace, quotes and brackets. A pair of parentheses inside a name belongs to it.
_NAME = r"(?:[^\s\"'`<>()\[\]{}|]|\([^\s\"'`<>()\[\]{}|]*\))"
_FILE_LINK = re.compile(rf"file://(?:localhost)?/{_NAME}+", re.IGNORECASE)
_TRAILING = ".,;:!?*_~"
# Not inside a URL or a longer path: https://example.org/home/…, docs/home/…
_HOME_FOLDER = re.compile(rf"(?<![\w/.:%~-])/(?:Users|home)/{_NAME}+")
_DRIVE = re.compile(
    r"(?<![\w/])[A-Za-z]:(?:\\[^\s\"'`<>()\[\]{}|]+|/[^\s/\"'`<>()\[\]{}|][^\s\"'`<>()\[\]{}|]*)"
)


@dataclass(frozen=True)
class Link:
    start: int
    end: int
    uri: str


def find_file_links(text: str) -> list[Link]:
    return [
        Link(match.start(), match.start() + len(uri), uri)
        for match in _FILE_LINK.finditer(text)
        if (uri := _uri(match))
    ]


def replace_file_links(text: str, replacement: Callable[[str], str | None]) -> str:
    """Replace each link by the result of the function; None keeps it."""
    parts: list[str] = []
    position = 0
    for link in find_file_links(text):
        parts += (text[position : link.start], replacement(link.uri) or link.uri)
        position = link.end
    return "".join([*parts, text[position:]])


def machine_specific_paths(text: str) -> list[str]:
    """Return the paths that work on one machine only (file links, home folders, drives), once each,
    in text order.
    """
    found = [(link.start, link.uri) for link in find_file_links(text)]
    rest = _FILE_LINK.sub(lambda match: " " * len(match[0]), text)
    for pattern in (_HOME_FOLDER, _DRIVE):
        found += [(match.start(), match[0].rstrip(_TRAILING)) for match in pattern.finditer(rest)]
    return list(dict.fromkeys(path for _, path in sorted(found)))


def _uri(match: re.Match[str]) -> str:
    """Return the URI without trailing punctuation."""
    return match[0].rstrip(_TRAILING)
