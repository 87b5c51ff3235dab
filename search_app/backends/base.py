"""What a database must do for the search. Terms, filters, scores, snippets and paging sit above and are shared."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

Order = Literal["newest", "recent"]


@dataclass(frozen=True)
class Token:
    """A token to look for. `text` is letters and digits alone; backends quote it nevertheless."""

    text: str
    is_prefix: bool = False
    in_title: bool = False


# One word of a query: any of its tokens is a match.
Clause = tuple[Token, ...]


@dataclass(frozen=True)
class Expression:
    """Which documents match: those with any clause, or with every one; anywhere or in the title."""

    clauses: tuple[Clause, ...]
    every: bool = False
    in_title: bool = False


class Candidate(NamedTuple):
    """A match with what ranking needs. The tokens of a text have a space on each side of each."""

    id: int
    kind: str
    object_id: int
    # When it last changed, in days since 1970.
    changed: float
    length: int
    title_key: int
    title: str
    body: str


@dataclass(frozen=True)
class Allowed:
    """The documents a search may find, as SQL to be joined: filters are inside the search, never after it."""

    sql: str
    params: tuple[Any, ...]
    # Each document has one of these marks, if it is for everybody, or one of those, if it is limited: the latter only where
    # the caller may see any such. They narrow; the SQL alone decides.
    shared: tuple[str, ...] = ()
    limited: tuple[str, ...] = ()
    # What has a mark of what is shared is allowed: there is nothing else to ask.
    marks_suffice: bool = False

    COLUMNS: ClassVar = ("id", "kind", "object_id", "updated_at", "length", "title_key")

    @property
    def condition(self) -> str:
        """What alone makes the choice, about the columns of the documents' table."""
        return self.sql.partition(" WHERE ")[2]


class Text(NamedTuple):
    """The tokens of a document, and its marks: what filters ask for most, for a backend that can look it up like a word."""

    title: str
    body: str
    marks: str


class Backend(Protocol):
    # Columns of the documents' rows that hold the text here, each with how a value is given to SQL.
    text_columns: Mapping[str, str]

    def text_values(self, text: Text) -> tuple[str, ...]:
        """For those columns."""

    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        """The texts of rows that were just written, where they are kept apart."""

    def mark(self, slot: str, number: int, marks: str) -> None:
        """Other marks for a document whose words stay."""

    def remove(self, slot: str, ids: Sequence[int]) -> None: ...

    def clear(self, slot: str) -> None: ...

    def settle(self, slot: str) -> None:
        """After a slot was filled: what the database needs to plan its queries well."""

    def lock_shared(self) -> None:
        """Taken by every writer: whoever changes the slots waits for them, and they see the change."""

    def lock_exclusive(self) -> None: ...

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        """Without `allowed`: how many documents of the whole index match."""

    def candidates(
        self, slot: str, expression: Expression, allowed: Allowed, limit: int, without: Sequence[int] = ()
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
        """Ids of documents, newest document or most recently changed first."""

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        """Those of these documents that may be found, whether they match or not."""

    def known(self, slot: str, tokens: Collection[str]) -> set[str]:
        """Those of many tokens, each of letters and digits alone, that any document of the whole index has."""

    def matching(self, slot: str, expression: Expression) -> Any:
        """An expression for the ids of all that match, to be put into a queryset's filter."""


def leaving_out(ids: Sequence[int]) -> str:
    return f"AND d.id NOT IN ({', '.join(['%s'] * len(ids))})" if ids else ""


def pad(tokens: Sequence[str]) -> str:
    """Two spaces between tokens and one at each end, so that counting " token " misses no neighbour."""
    return f" {'  '.join(tokens)} " if tokens else ""
