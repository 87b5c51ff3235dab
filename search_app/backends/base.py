"""Define what a database must do for search.

Terms, filters, scores, snippets and paging sit above it and are shared.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

Order = Literal["newest", "recent"]


@dataclass(frozen=True)
class Token:
    """Represent a token to search for.

    `text` contains only letters and digits; backends quote it anyway.
    """

    text: str
    is_prefix: bool = False
    in_title: bool = False


# One word of a query, matched by any of its tokens.
Clause = tuple[Token, ...]


@dataclass(frozen=True)
class Expression:
    """Select documents that have any clause, or every one; anywhere or in the title."""

    clauses: tuple[Clause, ...]
    every: bool = False
    in_title: bool = False


class Candidate(NamedTuple):
    """Hold a match with the data ranking needs. Each token of a text has a space on both sides."""

    id: int
    kind: str
    object_id: int
    # Time of the last change, in days since 1970.
    changed: float
    length: int
    title_key: int
    title: str
    body: str


@dataclass(frozen=True)
class Allowed:
    """Restrict a search to allowed documents, as SQL to join: filters run inside the search, never
    after it.
    """

    sql: str
    params: tuple[Any, ...]
    # Every allowed document has one of the `shared` marks if all readers may see it, or one of the
    # `limited` marks if not. `limited` is set only if the caller may see such documents. Marks only
    # narrow the search; the SQL alone decides.
    shared: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()
    # A document with a `shared` mark is allowed without any further check.
    marks_suffice: bool = False

    COLUMNS: ClassVar = ("id", "kind", "object_id", "updated_at", "length", "title_key")

    @property
    def condition(self) -> str:
        """Return the condition that decides, on the columns of the documents table."""
        return self.sql.partition(" WHERE ")[2]


class Text(NamedTuple):
    """Hold the tokens of a document and its marks, the most common filter values, for backends that
    can look them up like words.
    """

    title: str
    body: str
    marks: str


class Backend(Protocol):
    # Columns of the documents table that hold the text in this backend, each with its SQL
    # placeholder.
    text_columns: Mapping[str, str]

    def text_values(self, text: Text) -> tuple[str, ...]:
        """Return the values of those columns."""

    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        """Store the texts of newly written rows, where they are stored separately."""

    def mark(self, slot: str, number: int, marks: str) -> None:
        """Replace the marks of a document whose words stay."""

    def remove(self, slot: str, ids: Sequence[int]) -> None: ...

    def clear(self, slot: str) -> None: ...

    def settle(self, slot: str) -> None:
        """Update the planner statistics after a slot was filled."""

    def lock_shared(self) -> None:
        """Take the shared lock, as every writer does.

        A slot change waits for the writers, and later writers see the change.
        """

    def lock_exclusive(self) -> None: ...

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        """Count matches. Without `allowed`, count in the whole index."""

    def candidates(
        self,
        slot: str,
        expression: Expression,
        allowed: Allowed,
        limit: int,
        without: Sequence[int] = (),
    ) -> list[Candidate]: ...

    def page(
        self,
        slot: str,
        expression: Expression,
        allowed: Allowed,
        order: Order,
        *,
        offset: int,
        limit: int,
        without: Sequence[int] = (),
    ) -> list[int]:
        """Return ids of documents, newest document or most recently changed first."""

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        """Return the allowed documents among these, whether they match or not."""

    def known(self, slot: str, tokens: Collection[str]) -> set[str]:
        """Return the tokens that occur in any document of the whole index.

        Each token contains only letters and digits.
        """

    def matching(self, slot: str, expression: Expression) -> Any:
        """Return an expression for the ids of all matches, for use in a queryset's filter."""


def leaving_out(ids: Sequence[int]) -> str:
    return f"AND d.id NOT IN ({', '.join(['%s'] * len(ids))})" if ids else ""


def pad(tokens: Sequence[str]) -> str:
    """Join tokens with two spaces and add one at each end, so that counting " token " misses no
    neighbour.
    """
    return f" {'  '.join(tokens)} " if tokens else ""
