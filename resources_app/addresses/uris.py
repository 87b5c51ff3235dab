"""Parse and build URIs of every scheme in the backlog.

Parsing is pure and case-sensitive, and percent-decodes once.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlencode

from resources_app.errors import InvalidUri

SCHEMES = ("mcp", "ib", "file", "auth", "admin", "metadata", "workflow")
SERVER = "backlog"
MAX_LENGTH = 4000
MAX_SEGMENTS = 40
MAX_PARAMETERS = 100
# The possible forms of a URI. The registry lists the URIs that exist.
FORMS = (
    "mcp://backlog/{path}",
    "ib://{clientid}/{path}",
    "file:///{path}",
    "auth://{path}",
    "admin://{path}",
    "metadata://{path}",
    "workflow://{path}",
)

_SHAPE = re.compile(r"([a-z]{1,20})://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_AUTHORITY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\\\\\ud800-\udfff]")
_UNSAFE = re.compile("[\x00\ud800-\udfff]")
# Matched before decoding: a name that ends in "@v2" is written with %40.
_AT_VERSION = re.compile(r"(/.*[^/])@v([1-9][0-9]{0,8})", re.DOTALL)


@dataclass(frozen=True)
class Uri:
    """Hold a parsed URI.

    `authority` is the part after `://`. `version` comes from `@vN` or `?version=N` and is removed
    from the other parts. `fragment` names a place in the content (`#L10-L20`, `#section`). Viewers
    use it, readers ignore it, and `str()` omits it.
    """

    scheme: str
    authority: str
    segments: tuple[str, ...]
    query: tuple[tuple[str, str], ...] = ()
    version: int | None = None
    fragment: str = field(default="", compare=False)

    @property
    def path(self) -> str:
        return "/".join(self.segments)

    def __str__(self) -> str:
        path = "".join("/" + quote(segment, safe="") for segment in self.segments)
        pairs = [*self.query, *([("version", str(self.version))] if self.version else [])]
        return f"{self.scheme}://{self.authority}{path}" + (f"?{urlencode(pairs)}" if pairs else "")

    def without_version(self) -> "Uri":
        return Uri(self.scheme, self.authority, self.segments, self.query, fragment=self.fragment)


def parse(uri: object) -> Uri:
    if not isinstance(uri, str) or not uri:
        raise InvalidUri("A URI is needed, as a string.", uri=uri, patterns=list(FORMS))
    if len(uri) > MAX_LENGTH:
        raise _refused(uri, f"it is {len(uri)} characters long, {MAX_LENGTH} at most")
    match = _SHAPE.fullmatch(uri)
    if match is None:
        raise _refused(uri, "it is not of the form scheme://authority/path?query#fragment")
    scheme, authority, path, query, fragment = (part or "" for part in match.groups())
    if scheme not in SCHEMES:
        raise _refused(uri, f"the scheme must be one of {', '.join(SCHEMES)}")
    if _FORBIDDEN.search(fragment):
        raise _refused(uri, "its fragment has a backslash or control character")
    if scheme == "file":
        return _file_uri(uri, authority, path, query, fragment)
    return _server_uri(uri, scheme, authority, path, query, fragment)


def _server_uri(uri: str, scheme: str, authority: str, path: str, query: str, fragment: str) -> Uri:
    if not _AUTHORITY.fullmatch(authority):
        raise _refused(uri, "the part after :// must be a plain name without user, port or escapes")
    path, at_version = _split_version(path)
    pairs, query_version = _query(uri, query)
    if at_version and query_version:
        raise _refused(uri, "it names a version twice")
    version = at_version or query_version
    return _short_enough(
        Uri(scheme, authority, _segments(uri, path), pairs, version, fragment), uri
    )


def build(*segments: object, query: list[tuple[str, str]] | None = None) -> str:
    """Build a URI: `build("tasks", "TASK-0001")` → mcp://backlog/tasks/TASK-0001."""
    return str(Uri("mcp", SERVER, tuple(str(segment) for segment in segments), tuple(query or ())))


def build_path(path: str) -> str:
    """Return the URI of a resource by its path, resources/… or artifacts/…."""
    return build(*path.split("/"))


def _file_uri(uri: str, authority: str, path: str, query: str, fragment: str) -> Uri:
    """Parse a file URI. A query pages through a folder. Files on disk have no versions."""
    pairs, version = _query(uri, query)
    if authority not in {"", "localhost"} or version:
        raise _refused(uri, "a file URI is file:///absolute/path, without host or version")
    return _short_enough(Uri("file", "", _segments(uri, path), pairs, fragment=fragment), uri)


def _short_enough(parsed: Uri, uri: str) -> Uri:
    """Check the length of the escaped form too, so that every URI we return can be sent back."""
    if len(str(parsed)) > MAX_LENGTH:
        raise _refused(uri, f"it is longer than {MAX_LENGTH} characters when written with escapes")
    return parsed


def _segments(uri: str, path: str) -> tuple[str, ...]:
    if not path:
        return ()
    if _BAD_ESCAPE.search(path):
        raise _refused(uri, "it has a % that is not followed by two hexadecimal digits")
    try:
        segments = tuple(unquote(part, errors="strict") for part in path[1:].split("/"))
    except UnicodeDecodeError:
        raise _refused(uri, "its escapes are not UTF-8") from None
    if len(segments) > MAX_SEGMENTS:
        raise _refused(uri, f"it has more than {MAX_SEGMENTS} segments")
    for segment in segments:
        if segment in {"", ".", ".."} or "/" in segment or _FORBIDDEN.search(segment):
            raise _refused(
                uri, "a segment is empty, '.', '..', or has a slash, backslash or control character"
            )
    return segments


def _split_version(path: str) -> tuple[str, int | None]:
    match = _AT_VERSION.fullmatch(path)
    return (match[1], int(match[2])) if match else (path, None)


def _query(uri: str, query: str) -> tuple[tuple[tuple[str, str], ...], int | None]:
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=MAX_PARAMETERS
        )
    except ValueError:
        raise _refused(uri, "its query is not UTF-8 or has too many parameters") from None
    if any(_FORBIDDEN.search(key) or _UNSAFE.search(value) for key, value in pairs):
        raise _refused(uri, "its query has a control character")
    versions = [value for key, value in pairs if key == "version"]
    if not versions:
        return tuple(pairs), None
    if len(versions) > 1 or not re.fullmatch("[1-9][0-9]{0,8}", versions[0], re.ASCII):
        raise _refused(uri, "version must be one whole number from 1")
    return tuple(pair for pair in pairs if pair[0] != "version"), int(versions[0])


def _refused(uri: str, reason: str) -> InvalidUri:
    return InvalidUri(f"The URI cannot be used: {reason}.", uri=uri[:500], patterns=list(FORMS))
