"""Read and write an item's comments as a file: one JSON object per line, oldest first."""

import datetime
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import FIELDS, clean_text
from resources_app.models import Comment, Epic, Task
from resources_app.reading.markdown import BOOKKEEPING, write_time
from resources_app.vocabulary import Kind

AUTHORS = "comment_authors"
MAX_BYTES = 200_000_000
_KEYS = ("created_at", "updated_at", "author", "agent", "archived_at", "body")


@dataclass(frozen=True)
class CommentLine:
    created_at: datetime.datetime
    updated_at: datetime.datetime
    author: str | None
    agent: str
    body: str
    archived_at: datetime.datetime | None = None
    unknown: tuple[str, ...] = ()

    def render(self) -> str:
        facts = {
            "created_at": write_time(self.created_at),
            "updated_at": write_time(self.updated_at),
            "author": self.author,
            "agent": self.agent,
            "archived_at": write_time(self.archived_at) if self.archived_at else None,
            "body": self.body,
        }
        return (
            json.dumps({key: value for key, value in facts.items() if value}, ensure_ascii=False)
            + "\n"
        )


def lines_of(item: Task | Epic, comments: Iterable[Comment]) -> list[CommentLine]:
    """Return the lines, oldest first.

    Authors without an account keep the name from the imported file.
    """
    names = {moment: list(authors) for moment, authors in remembered_authors(item).items()}
    lines = []
    for comment in comments:
        strangers = names.get(author_key(comment.created_at), [])
        known = comment.author.username if comment.author else None
        author = known or (strangers.pop(0) if strangers else None)
        lines.append(
            CommentLine(
                comment.created_at,
                comment.updated_at,
                author,
                comment.agent,
                comment.body,
                comment.archived_at,
            )
        )
    return lines


def author_key(moment: datetime.datetime) -> str:
    """Return the comment's time in the stable format of the bookkeeping."""
    return moment.astimezone(datetime.UTC).isoformat().replace("+00:00", "Z")


def remembered_authors(item: Task | Epic) -> dict[str, list[str]]:
    authors: dict[str, list[str]] = item.extra.get(BOOKKEEPING, {}).get(AUTHORS, {})
    return authors


def read_lines(text: str) -> tuple[list[CommentLine], list[str]]:
    """Return the comments that can be read, and the problems of the others."""
    lines, problems = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            lines.append(_read_line(line))
        except (ValidationFailed, ValueError, TypeError, RecursionError) as error:
            problems.append(f"Line {number} was not read: {error}")
    return lines, problems


def _read_line(line: str) -> CommentLine:
    facts = json.loads(line)
    if not isinstance(facts, dict):
        raise ValidationFailed("it is not a JSON object.")
    created = _time(facts, "created_at")
    if created is None:
        raise ValidationFailed("it has no created_at.")
    author = facts.get("author")
    return CommentLine(
        created_at=created,
        updated_at=_time(facts, "updated_at") or created,
        author=clean_text("author", author, 150) if author else None,
        agent=clean_text("agent", facts.get("agent") or "", 100),
        body=FIELDS[Kind.COMMENT]["body"].clean("body", facts.get("body")),
        archived_at=_time(facts, "archived_at"),
        unknown=tuple(key for key in facts if key not in _KEYS),
    )


def _time(facts: dict[str, Any], name: str) -> datetime.datetime | None:
    if not facts.get(name):
        return None
    try:
        moment = datetime.datetime.fromisoformat(facts[name])
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).astimezone(
            datetime.UTC
        )
    except OverflowError:
        raise ValidationFailed(f"{name} is out of range: {facts[name]!r}.") from None
