"""Search SQLite with FTS5, in the same file and transaction as the write.

It matches and counts; scores are computed above.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from search_app.backends.base import (
    Allowed,
    Candidate,
    Clause,
    Expression,
    Order,
    Text,
    Token,
    leaving_out,
)

_TABLES = {"a": "search_text_a", "b": "search_text_b"}
_CREATE = (
    "CREATE VIRTUAL TABLE {} USING fts5(title, body, marks, tokenize = 'ascii', detail = column)"
)
_CANDIDATE = (
    "d.id, d.kind, d.object_id, julianday(d.updated_at) - 2440587.5, d.length, d.title_key,"
    " f.title, f.body"
)
_ORDERS = {"newest": "d.id DESC", "recent": "d.updated_at DESC, d.kind, d.object_id"}


class SqliteBackend:
    text_columns: Mapping[str, str] = {}

    def text_values(self, text: Text) -> tuple[str, ...]:
        return ()

    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT OR REPLACE INTO {_TABLES[slot]} (rowid, title, body, marks) VALUES (%s,"  # noqa: S608
                " %s, %s, %s)",
                [(number, *text) for number, text in texts.items()],
            )

    def mark(self, slot: str, number: int, marks: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {_TABLES[slot]} SET marks = %s WHERE rowid = %s AND marks <> %s",  # noqa: S608
                [marks, number, marks],
            )

    def remove(self, slot: str, ids: Sequence[int]) -> None:
        with connection.cursor() as cursor:
            sql = f"DELETE FROM {_TABLES[slot]} WHERE rowid = %s"  # noqa: S608
            cursor.executemany(sql, [(number,) for number in ids])

    def clear(self, slot: str) -> None:
        with connection.cursor() as cursor:
            # Deleting the rows would tokenize each text again.
            cursor.execute(f"DROP TABLE {_TABLES[slot]}")
            cursor.execute(_CREATE.format(_TABLES[slot]))

    def settle(self, slot: str) -> None:
        """Do nothing: the joins are written in execution order."""

    def lock_shared(self) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def lock_exclusive(self) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        """Count matches.

        Documents shared with all readers are counted by words and marks alone, without reading a
        row per match.
        """
        if allowed is None:
            return _count(slot, _match(expression))
        shared = _count(
            slot, _match(expression, allowed.shared), None if allowed.marks_suffice else allowed
        )
        limited = (
            _count(slot, _match(expression, allowed.limited), allowed) if allowed.limited else 0
        )
        return shared + limited

    def candidates(
        self,
        slot: str,
        expression: Expression,
        allowed: Allowed,
        limit: int,
        without: Sequence[int] = (),
    ) -> list[Candidate]:
        source, params = _joined(
            slot, _match(expression, allowed.shared + allowed.limited), allowed
        )
        # FTS5 itself returns rowid order, so LIMIT ends the reading.
        return _candidates(
            f"{source} {leaving_out(without)} ORDER BY f.rowid DESC LIMIT %s",
            [*params, *without, limit],
        )

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        chosen = ", ".join(["%s"] * len(ids))
        source = (
            f"FROM {_TABLES[slot]} f JOIN ({allowed.sql}) d ON d.id = f.rowid WHERE f.rowid IN"
            f" ({chosen})"
        )
        return _candidates(source, [*allowed.params, *ids])

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
        source, params = _joined(
            slot, _match(expression, allowed.shared + allowed.limited), allowed
        )
        sql = (
            f"SELECT d.id {source} {leaving_out(without)} ORDER BY {_ORDERS[order]} LIMIT %s"
            " OFFSET %s"
        )
        return [number for (number,) in _select(sql, [*params, *without, limit, offset])]

    def known(self, slot: str, tokens: Collection[str]) -> set[str]:
        table = _TABLES[slot]
        has_it = f"EXISTS (SELECT 1 FROM {table} WHERE {table} MATCH '\"' || value || '\"')"  # noqa: S608
        sql = f"SELECT value FROM json_each(%s) WHERE {has_it}"  # noqa: S608
        rows = _select(sql, [json.dumps(list(tokens))])
        return {token for (token,) in rows}

    def matching(self, slot: str, expression: Expression) -> Any:
        table = _TABLES[slot]
        return RawSQL(f"SELECT rowid FROM {table} WHERE {table} MATCH %s", [_match(expression)])  # noqa: S608, S611


def _count(slot: str, match: str, allowed: Allowed | None = None) -> int:
    table = _TABLES[slot]
    source, params = (f"FROM {table} WHERE {table} MATCH %s", [match])
    if allowed:
        source, params = _joined(slot, match, allowed)
    [[total]] = _select(f"SELECT count(*) {source}", params)
    return int(total)


def _joined(slot: str, match: str, allowed: Allowed) -> tuple[str, list[Any]]:
    """Return the joined source.

    CROSS JOIN keeps the order: matches first, then each row by its key.
    """
    table = _TABLES[slot]
    source = (
        f"FROM {table} f CROSS JOIN ({allowed.sql}) d ON d.id = f.rowid WHERE f.{table} MATCH %s"
    )
    return source, [*allowed.params, match]


def _match(expression: Expression, marks: Sequence[str] = ()) -> str:
    joined = (" AND " if expression.every else " OR ").join(
        _clause(clause) for clause in expression.clauses
    )
    words = f"title : ({joined})" if expression.in_title else f"({joined})"
    # Marks are rarer than the slow words, so they come first.
    return f"marks : ({' OR '.join(map(_quoted, marks))}) AND {words}" if marks else words


def _clause(clause: Clause) -> str:
    return f"({' OR '.join(map(_token, clause))})"


def _token(token: Token) -> str:
    return (
        ("title : " if token.in_title else "")
        + _quoted(token.text)
        + (" *" if token.is_prefix else "")
    )


def _quoted(token: str) -> str:
    return '"' + token.replace('"', '""') + '"'


def _candidates(source: str, params: Sequence[Any]) -> list[Candidate]:
    return [Candidate._make(row) for row in _select(f"SELECT {_CANDIDATE} {source}", params)]


def _select(sql: str, params: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())
