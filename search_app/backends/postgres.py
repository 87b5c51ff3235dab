"""PostgreSQL: a GIN index over a tsvector made of our own tokens, in the documents' rows. It matches and counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from search_app.backends.base import Allowed, Candidate, Clause, Expression, Order, Text, Token

_TABLE = "search_app_document"
_ORDERS = {"newest": "id DESC", "recent": "updated_at DESC, kind, object_id"}
# The number of an advisory lock; any will do that nobody else takes.
_LOCK = 0x5EA2C4
_CANDIDATE = "id, kind, object_id, extract(epoch FROM updated_at)::float8 / 86400, length, title_key, title, body"
# No token has it.
_IN_TITLE = "^"
# The planner takes looking into a tsvector for cheap. Most are stored apart: reading each takes ten times longer.
_BY_INDEX = "SET LOCAL enable_seqscan = {0}; SET LOCAL enable_indexscan = {0}"


class PostgresBackend:
    # Written with the row: a second statement would enter all words into the index once more.
    text_columns: Mapping[str, str] = {"title": "%s", "body": "%s", "terms": "%s::tsvector"}

    def text_values(self, text: Text) -> tuple[str, ...]:
        return text.title, text.body, _vector(text)

    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        """The texts came with the documents."""

    def mark(self, slot: str, number: int, marks: str) -> None:
        """What filters ask for is in the row that every match is read from."""

    def remove(self, slot: str, ids: Sequence[int]) -> None:
        """The texts go with the documents."""

    def clear(self, slot: str) -> None:
        """The texts go with the documents."""

    def settle(self, slot: str) -> None:
        _execute(f"ANALYZE {_TABLE}")

    def lock_shared(self) -> None:
        _execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])

    def lock_exclusive(self) -> None:
        _execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        source, params = _matches(expression, allowed or _everything(slot))
        [[total]] = _select_by_index(f"SELECT count(*) {source}", params)
        return int(total)

    def candidates(
        self, slot: str, expression: Expression, allowed: Allowed, limit: int, without: Sequence[int] = ()
    ) -> list[Candidate]:
        source, params = _matches(expression, allowed)
        return _candidates(f"{source} AND id <> ALL(%s) ORDER BY id DESC LIMIT %s", [*params, list(without), limit])

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        source = f"FROM {_TABLE} WHERE {allowed.condition} AND id = ANY(%s)"
        return _candidates(source, [*allowed.params, list(ids)])

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
        source, params = _matches(expression, allowed)
        sql = f"SELECT id {source} AND id <> ALL(%s) ORDER BY {_ORDERS[order]} LIMIT %s OFFSET %s"
        return [number for (number,) in _select(sql, [*params, list(without), limit, offset])]

    def matching(self, slot: str, expression: Expression) -> Any:
        source, params = _matches(expression, _everything(slot))
        return RawSQL(f"SELECT id {source}", params)  # noqa: S611


def _everything(slot: str) -> Allowed:
    return Allowed(f"SELECT id FROM {_TABLE} WHERE slot = %s", (slot,))  # noqa: S608


def _matches(expression: Expression, allowed: Allowed) -> tuple[str, list[Any]]:
    """The words are in the rows that `allowed` is about: the match is one more condition."""
    source = f"FROM {_TABLE} WHERE {allowed.condition} AND terms @@ %s::tsquery"
    return source, [*allowed.params, _match(expression)]


def _match(expression: Expression) -> str:
    return (" & " if expression.every else " | ").join(
        _clause(clause, expression.in_title) for clause in expression.clauses
    )


def _clause(clause: Clause, in_title: bool) -> str:
    return f"({' | '.join(_token(token, in_title) for token in clause)})"


def _token(token: Token, in_title: bool) -> str:
    marked = _IN_TITLE + token.text if in_title or token.in_title else token.text
    return _quoted(marked) + (":*" if token.is_prefix else "")


def _vector(text: Text) -> str:
    """Which tokens there are, and once more, marked, those of the title. How often each occurs is counted in the text itself.

    PostgreSQL's own marks are not in its index: each match would be read again to see where the word stands.
    """
    title = set(text.title.split())
    return " ".join(map(_quoted, {*title, *text.body.split(), *(_IN_TITLE + token for token in title)}))


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _candidates(source: str, params: Sequence[Any]) -> list[Candidate]:
    return [Candidate._make(row) for row in _select(f"SELECT {_CANDIDATE} {source}", params)]


def _select(sql: str, params: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _select_by_index(sql: str, params: Sequence[Any]) -> list[Any]:
    """One round trip and one transaction; in a transaction of the caller the settings would outlive it."""
    with connection.cursor() as cursor:
        cursor.execute(f"{_BY_INDEX.format('off')}; {sql}; {_BY_INDEX.format('DEFAULT')}", params)
        # Past the answers to the two settings.
        cursor.nextset()
        cursor.nextset()
        return list(cursor.fetchall())


def _execute(sql: str, params: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
