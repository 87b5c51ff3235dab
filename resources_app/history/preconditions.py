"""Evaluate preconditions: the ETag sent with a write and the conditional headers of RFC 9110."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.history.etags import normalise

_ENTRY = re.compile(r'[ \t]*(?:(W/)?"([^"]*)"|([^\s,"*][^\s,"]*))?[ \t]*(?:,|$)')
MAX_HEADER = 8_000


@dataclass(frozen=True)
class EntityTags:
    """Hold the value of If-Match or If-None-Match. `anything` represents `*`."""

    anything: bool = False
    strong: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()

    def match_strongly(self, etag: str) -> bool:
        """Compare strongly.

        A weak tag never matches because it promises only semantic equivalence.
        """
        return self.anything or etag in self.strong

    def match_weakly(self, etag: str) -> bool:
        return self.match_strongly(etag) or etag in self.weak


def parse_tags(header: str, value: str) -> EntityTags:
    """Parse `*` or a list of tags. An unquoted tag counts as strong. Raises ValidationFailed."""
    if value.strip() == "*":
        return EntityTags(anything=True)
    strong: list[str] = []
    weak: list[str] = []
    position = 0
    while position < len(value):
        entry = _ENTRY.match(value, position) if len(value) <= MAX_HEADER else None
        if entry is None:
            raise _malformed(header, value)
        (weak if entry[1] else strong).extend(tag for tag in entry.group(2, 3) if tag is not None)
        position = entry.end()
    if not strong and not weak:
        raise _malformed(header, value)
    return EntityTags(strong=tuple(strong), weak=tuple(weak))


def _malformed(header: str, value: str) -> ValidationFailed:
    return ValidationFailed(
        f'{header} must be * or a list of ETags such as "3-0123456789ab".',
        field=header,
        value=value[:200],
    )


@dataclass(frozen=True)
class Preconditions:
    """Hold the preconditions of a request. `etag` is the argument or body field of that name."""

    etag: Any = None
    if_match: EntityTags | None = None
    if_none_match: EntityTags | None = None
    unmodified_since: datetime | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in (self.etag, *self._headers))

    @property
    def need_existence(self) -> bool:
        """Return whether a precondition requires that the target exists."""
        return any(value is not None for value in (self.etag, self.if_match, self.unmodified_since))

    @property
    def _headers(self) -> tuple[Any, ...]:
        return (self.if_match, self.if_none_match, self.unmodified_since)

    def fingerprint(self) -> dict[str, str]:
        """Return the conditional headers for the idempotency hash: another precondition makes
        another request.
        """
        return (
            {"headers": repr(self._headers)}
            if any(value is not None for value in self._headers)
            else {}
        )

    def is_stale(self, current: str, updated_at: datetime | None = None) -> bool:
        """Return whether the caller has seen a state other than the current one."""
        if self.etag is not None and normalise(self.etag) not in {current, "*"}:
            return True
        if self.if_match is not None:
            return not self.if_match.match_strongly(current)
        limit = self.unmodified_since
        return (
            limit is not None
            and updated_at is not None
            and updated_at.replace(microsecond=0) > limit
        )

    def is_excluded(self, current: str) -> bool:
        """Return whether If-None-Match names the current state."""
        return self.if_none_match is not None and self.if_none_match.match_weakly(current)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return the tags that the caller believes to be current."""
        listed = (*self.if_match.strong, *self.if_match.weak) if self.if_match else ()
        return (*([self.etag] if self.etag is not None else []), *listed)


def preconditions(given: Any) -> Preconditions:
    """Normalize an ETag, Preconditions or None to Preconditions. Raises ValidationFailed."""
    conditions = given if isinstance(given, Preconditions) else Preconditions(given)
    if not isinstance(conditions.etag, str | None):
        raise ValidationFailed("etag must be a string.", field="etag", value=conditions.etag)
    return conditions
