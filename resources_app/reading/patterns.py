"""Declare and match URI patterns.

An entry says how its addresses are read, written, watched, completed, listed and documented.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from functools import cached_property

from resources_app.addresses.targets import Target, Variables
from resources_app.addresses.uris import Uri
from resources_app.errors import BacklogError
from resources_app.reading.result import Reading, ReadRequest
from resources_app.reading.variables import Variable

_VARIABLE = re.compile(r"\{(\w+)\}")
_REST = "{path}"


class PatternSection(IntEnum):
    """Order the sections of resources/list. The fixed addresses come before them."""

    EPICS = auto()
    TASKS = auto()
    FILES = auto()
    IB_FOLDERS = auto()


class Rule(Enum):
    """Name the changes that alter the content at an address; watching.py decides by it."""

    FEED = auto()
    TASKS = auto()
    EPICS = auto()
    EPIC_TASKS = auto()
    ARCHIVE = auto()
    ITEM = auto()
    FIELD = auto()
    COMMENTS = auto()
    ITEM_COMMENTS = auto()
    COMMENT = auto()
    PATH = auto()
    FILE_PART = auto()
    ARCHIVED_FILES = auto()
    IB_FOLDER = auto()
    IB_FOLDER_RESOURCES = auto()
    IB_RESOURCE = auto()


@dataclass(frozen=True)
class Watch:
    """Say which changes notify a watcher.

    A notice carries the ETag of the addressed object, of its `part`, or none if `part` is None. An
    address that names one thing disappears with it; collections and folders remain.
    """

    rule: Rule
    part: str | None = None
    names_one_thing: bool = False


@dataclass(frozen=True)
class Entry:
    """Declare a URI pattern.

    `{name}` matches one segment; `{path}` matches one or more. Without a `target` nothing can be
    written, and `refusal` says why if more than that is to be said. Without a `watch` nothing can
    be watched. `fills` describes the variables. `listed` is the section of resources/list that has
    the things at this pattern; a fixed address is listed itself.
    """

    pattern: str
    name: str
    description: str
    category: str
    mime_type: str
    reader: Callable[[ReadRequest], Reading]
    parameters: tuple[str, ...] = ()
    versioned: bool = False
    requires_admin: bool = False
    is_public: bool = False
    fills: tuple[Variable, ...] = ()
    target: Callable[[Uri, Variables], Target] | None = None
    refusal: Callable[[Uri], BacklogError] | None = None
    watch: Watch | None = None
    listed: PatternSection | None = None

    @property
    def scheme(self) -> str:
        return self.pattern.partition("://")[0]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(_VARIABLE.findall(self.pattern))

    @property
    def is_template(self) -> bool:
        return bool(self.variables)

    @property
    def example(self) -> str:
        examples = {variable.name: variable.example for variable in self.fills}
        return _VARIABLE.sub(lambda match: examples[match[1]], self.pattern)

    def fill_of(self, name: str) -> Variable | None:
        return next((variable for variable in self.fills if variable.name == name), None)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Return authority and segments, as in `Uri`.

        The query of a pattern is documentation only.
        """
        rest = self.pattern.partition("://")[2].partition("?")[0]
        return tuple(rest.split("/")) if rest else ()

    @cached_property
    def specificity(self) -> tuple[int, ...]:
        """Sort the first pattern to try first: at each place a literal, a variable, the rest of a
        path, the end of the pattern after it.

        tasks/{id}/file precedes tasks/{id}/{field}, and resources/{path}/versions resources/{path}.
        """
        ranks = [0 if part[:1] != "{" else 2 if part == _REST else 1 for part in self.parts]
        return (*ranks, 3)

    def match(self, parts: tuple[str, ...]) -> dict[str, str] | None:
        pattern = self.parts
        if _REST in pattern:
            start, extra = pattern.index(_REST), len(parts) - len(pattern) + 1
            if extra < 1:
                return None
            rest = "/".join(parts[start : start + extra])
            parts = (*parts[:start], rest, *parts[start + extra :])
        if len(parts) != len(pattern):
            return None
        variables: dict[str, str] = {}
        for expected, part in zip(pattern, parts, strict=True):
            if expected.startswith("{"):
                variables[expected[1:-1]] = part
            elif expected != part:
                return None
        return variables


class Registry:
    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: tuple[Entry, ...] = ()
        self.add(*entries)

    def add(self, *entries: Entry) -> None:
        """Add entries. Called at start-up only, by apps in higher layers."""
        self._entries += entries
        self._by_pattern = {entry.pattern: entry for entry in self._entries}
        self._static = {
            (entry.scheme, entry.parts): entry for entry in self._entries if not entry.is_template
        }
        templates = [entry for entry in self._entries if entry.is_template]
        self._templates = sorted(templates, key=lambda entry: entry.specificity)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def entry_of(self, pattern: str) -> Entry | None:
        return self._by_pattern.get(pattern)

    def match(self, uri: Uri) -> tuple[Entry, dict[str, str]] | None:
        parts = (uri.authority, *uri.segments)
        entry = self.match_loosely(uri.scheme, parts)
        return (entry, entry.match(parts) or {}) if entry else None

    def match_loosely(self, scheme: str, parts: tuple[str, ...]) -> Entry | None:
        """Match even if a variable is empty or malformed."""
        if static := self._static.get((scheme, parts)):
            return static
        return next(
            (
                entry
                for entry in self._templates
                if entry.scheme == scheme and entry.match(parts) is not None
            ),
            None,
        )

    def patterns_like(self, uri: Uri) -> list[str]:
        same = [entry.pattern for entry in self._entries if entry.scheme == uri.scheme]
        return same or [entry.pattern for entry in self._entries]

    def versioned_patterns(self) -> list[str]:
        return [entry.pattern for entry in self._entries if entry.versioned]

    def writable_patterns(self) -> list[str]:
        return [entry.pattern for entry in self._entries if entry.target]
