"""Declare and match URI patterns: static ones by lookup, templates with the most literal parts
first.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from resources_app.addresses.uris import Uri
from resources_app.reading.result import Reading, ReadRequest

_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Entry:
    """Declare a URI pattern.

    `{name}` matches one segment; a final `{path}` matches all remaining segments.
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

    @property
    def scheme(self) -> str:
        return self.pattern.partition("://")[0]

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(_VARIABLE.findall(self.pattern))

    @property
    def is_template(self) -> bool:
        return bool(self.variables)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """Return authority and segments, as in `Uri`.

        The query of a pattern is documentation only.
        """
        rest = self.pattern.partition("://")[2].partition("?")[0]
        return tuple(rest.split("/")) if rest else ()

    def match(self, parts: tuple[str, ...]) -> dict[str, str] | None:
        pattern = self.parts
        if pattern[-1] == "{path}":
            if len(parts) < len(pattern):
                return None
            parts = (*parts[: len(pattern) - 1], "/".join(parts[len(pattern) - 1 :]))
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
        self._static = {
            (entry.scheme, entry.parts): entry for entry in self._entries if not entry.is_template
        }
        templates = [entry for entry in self._entries if entry.is_template]
        # More literal parts win: tasks/{id}/file before tasks/{id}/{field}.
        self._templates = sorted(
            templates,
            key=lambda entry: (
                len(entry.variables) - len(entry.parts),
                entry.parts[-1] == "{path}",
            ),
        )

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

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
