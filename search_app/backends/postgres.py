"""Search PostgreSQL with a GIN index over a tsvector of our own tokens, stored in the documents
table. It matches and counts.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from search_app.backends.base import Allowed, Candidate, Clause, Expression, Order, Text, Token
from search_app.backends.visibility_tokens import MARK

_TABLE = "search_app_document"
_ORDERS = {"newest": "id DESC", "recent": "updated_at DESC, kind, object_id"}
# The key of an advisory lock; any unused number will do.
_LOCK = 0x5EA2C4
_CANDIDATE = (
    "id, kind, object_id, extract(epoch FROM updated_at)::float8 / 86400, length, title_key, words"
)
# A character that no token contains.
_IN_TITLE = "^"
_MARKS = (
    "ARRAY(SELECT lexeme FROM unnest(terms)"  # noqa: S608
    f" WHERE starts_with(lexeme, '{MARK}') ORDER BY lexeme COLLATE \"C\")"
)
# The planner considers matching a tsvector cheap. Most are stored out of line, so reading each
# takes ten times longer. Counts therefore always use the index. For result pages we raise
# `cpu_operator_cost`, so that rows are scanned in order only where most of them match.
_Planning = dict[str, str]
_COUNTING: _Planning = {"enable_seqscan": "off", "enable_indexscan": "off"}
_CHOOSING: _Planning = {"cpu_operator_cost": "1"}


class PostgresBackend:
    # Written with the row: a second statement would index all words again.
    text_columns: Mapping[str, str] = {"words": "%s", "terms": "%s::tsvector"}

    def text_values(self, text: Text) -> tuple[str, ...]:
        # In one column: each would be fetched separately from TOAST storage.
        return f"{text.title}\n{text.body}", _vector(text)

    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        """Do nothing: the texts were written with the documents."""

    def mark(self, slot: str, number: int, marks: str) -> None:
        given = sorted(marks.split())
        _execute(
            f"UPDATE {_TABLE} SET terms = ts_delete(terms, {_MARKS})"  # noqa: S608
            " || array_to_tsvector(%s::text[])"
            f" WHERE id = %s AND {_MARKS} <> %s::text[]",
            [given, number, given],
        )

    def remove(self, slot: str, ids: Sequence[int]) -> None:
        """Do nothing: the texts are deleted with the documents."""

    def clear(self, slot: str) -> None:
        """Do nothing: the texts are deleted with the documents."""

    def settle(self, slot: str) -> None:
        _execute(f"ANALYZE {_TABLE}")

    def lock_shared(self) -> None:
        _execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])

    def lock_exclusive(self) -> None:
        _execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        """Count matches.

        Documents shared with all readers are counted by words and marks alone, without a check per
        match.
        """
        if allowed is None:
            return _count(_everything(slot), _match(expression))
        asked = _everything(slot) if allowed.marks_suffice else allowed
        shared = _count(asked, _match(expression, allowed.shared))
        limited = _count(allowed, _match(expression, allowed.limited)) if allowed.limited else 0
        return shared + limited

    def candidates(
        self,
        slot: str,
        expression: Expression,
        allowed: Allowed,
        limit: int,
        without: Sequence[int] = (),
    ) -> list[Candidate]:
        """Select the ids first, then their texts, so that the sorted rows stay short."""
        source, params = _matches(expression, allowed)
        newest = f"SELECT id {source} AND id <> ALL(%s) ORDER BY id DESC LIMIT %s"
        return _candidates(f"id = ANY(ARRAY({newest}))", [*params, list(without), limit])

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        return _candidates(f"{allowed.condition} AND id = ANY(%s)", [*allowed.params, list(ids)])

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

    def known(self, slot: str, tokens: Collection[str]) -> set[str]:
        has_it = f"EXISTS (SELECT FROM {_TABLE} WHERE slot = %s AND terms @@ token::tsquery)"
        rows = _select(
            f"SELECT token FROM unnest(%s::text[]) token WHERE {has_it}",  # noqa: S608
            [list(tokens), slot],
            _COUNTING,
        )
        return {token for (token,) in rows}

    def matching(self, slot: str, expression: Expression) -> Any:
        source, params = _matches(expression, _everything(slot))
        return RawSQL(f"SELECT id {source}", params)  # noqa: S611


def _everything(slot: str) -> Allowed:
    return Allowed(f"SELECT id FROM {_TABLE} WHERE slot = %s", (slot,))  # noqa: S608


def _matches(expression: Expression, allowed: Allowed) -> tuple[str, list[Any]]:
    """Return the source of matches.

    The words are columns of the rows `allowed` selects, so the match is one more condition.
    """
    source = f"FROM {_TABLE} WHERE {allowed.condition} AND terms @@ %s::tsquery"
    return source, [*allowed.params, _match(expression, allowed.shared + allowed.limited)]


def _count(allowed: Allowed, match: str) -> int:
    sql = f"SELECT count(*) FROM {_TABLE} WHERE {allowed.condition} AND terms @@ %s::tsquery"  # noqa: S608
    [[total]] = _select(sql, [*allowed.params, match], _COUNTING)
    return int(total)


def _match(expression: Expression, marks: Sequence[str] = ()) -> str:
    words = (" & " if expression.every else " | ").join(
        _clause(clause, expression.in_title) for clause in expression.clauses
    )
    return f"({words}) & ({' | '.join(map(_quoted, marks))})" if marks else words


def _clause(clause: Clause, in_title: bool) -> str:
    return f"({' | '.join(_token(token, in_title) for token in clause)})"


def _token(token: Token, in_title: bool) -> str:
    marked = _IN_TITLE + token.text if in_title or token.in_title else token.text
    return _quoted(marked) + (":*" if token.is_prefix else "")


def _vector(text: Text) -> str:
    """Return the set of tokens, with the title's tokens repeated and tagged. Frequencies are
    counted in the text itself.

    PostgreSQL's own weights are not in its index: each match would be read again to see where the
    word stands.
    """
    title = set(text.title.split())
    return " ".join(
        map(
            _quoted,
            {
                *title,
                *text.body.split(),
                *(_IN_TITLE + token for token in title),
                *text.marks.split(),
            },
        )
    )


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _candidates(condition: str, params: Sequence[Any]) -> list[Candidate]:
    rows = _select(f"SELECT {_CANDIDATE} FROM {_TABLE} WHERE {condition}", params)  # noqa: S608
    return [Candidate(*columns, *words.split("\n", 1)) for *columns, words in rows]


def _select(sql: str, params: Sequence[Any], planning: _Planning = _CHOOSING) -> list[Any]:
    """Run the query in one round trip and one transaction.

    Inside a caller's transaction the settings would outlive it.
    """
    before = [f"SET LOCAL {name} = {value}" for name, value in planning.items()]
    after = [f"SET LOCAL {name} = DEFAULT" for name in planning]
    with connection.cursor() as cursor:
        cursor.execute("; ".join([*before, sql, *after]), params)
        # Skip the results of the settings.
        for _ in before:
            cursor.nextset()
        return list(cursor.fetchall())


def _execute(sql: str, params: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
