"""Resolve a link in a text to a page of this site, to another site, or to a reason why it cannot be
followed. Pure.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote

OWN_SCHEMES = ("mcp://", "file://", "ib://")
WEB_SCHEMES = ("http", "https", "mailto")
REF = r"\b(?:TASK|EPIC)-\d{4,}\b"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,40}):")
_WHOLE_REF = re.compile(REF)


@dataclass(frozen=True)
class Destination:
    """Hold the target of a link.

    `uri` is the backlog address that `href` opens, if any. Without `href`, `reason` says why.
    """

    href: str = ""
    uri: str = ""
    reason: str = ""


def resolve(url: str, base: str = "") -> Destination:
    """Return the destination of `url`, relative to the file at `base`."""
    if url.startswith(OWN_SCHEMES):
        return _ours(url)
    if _WHOLE_REF.fullmatch(url):
        return Destination(f"/t/{url}/")
    if scheme := _SCHEME.match(url):
        known = scheme[1].lower() in WEB_SCHEMES
        return (
            Destination(url)
            if known
            else Destination(reason=f"{scheme[1]}: links are not supported")
        )
    return _relative(url, base)


def _ours(uri: str) -> Destination:
    return Destination("/open/?uri=" + quote(uri, safe=""), uri)


def _relative(url: str, base: str) -> Destination:
    if not base:
        return Destination(reason="relative link outside a file")
    path, mark, fragment = url.partition("#")
    if path.startswith("/"):
        return Destination(reason="absolute path: write it relative to this file")
    home = base.partition("#")[0].partition("?")[0]
    if not path:
        return _ours(home + mark + fragment) if fragment else Destination(reason="empty link")
    prefix, _, here = home.partition("://")
    authority, *folders = here.split("/")[:-1]
    return _below(f"{prefix}://{authority}", folders, path, mark + fragment)


def _below(root: str, folders: list[str], path: str, rest: str) -> Destination:
    parts = list(folders)
    for part in path.split("/"):
        if part == ".." and not parts:
            return Destination(reason="leads above the topmost folder")
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if not parts:
        return Destination(reason="leads to no file or folder")
    return _ours("/".join([root, *parts]) + rest)
