"""SQLite: FTS5 in the same file and the same transaction as the write. It matches and counts; scores are made above."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from search_app.backends.base import Allowed, Candidate, Clause, Expression, Order, Text, Token, leaving_out

_TABLES = {"a": "search_text_a", "b": "search_text_b"}
_ORDERS = {"newest": "d.id DESC", "recent": "d.updated_at DESC, d.kind, d.object_id"}


class SqliteBackend:
    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        rows = [(number, text.title, text.body) for number, text in texts.items()]
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT OR REPLACE INTO {_TABLES[slot]} (rowid, title, body) VALUES (%s, %s, %s)",  # noqa: S608
                rows,
            )

    def remove(self, slot: str, ids: Sequence[int]) -> None:
        with connection.cursor() as cursor:
            cursor.executemany(f"DELETE FROM {_TABLES[slot]} WHERE rowid = %s", [(number,) for number in ids])  # noqa: S608

    def clear(self, slot: str) -> None:
        with connection.cursor() as cursor:
            # Deleting the rows would take each text apart again.
            cursor.execute(f"DROP TABLE {_TABLES[slot]}")
            cursor.execute(f"CREATE VIRTUAL TABLE {_TABLES[slot]} USING fts5(title, body, tokenize = 'ascii')")

    def settle(self, slot: str) -> None:
        """The joins are written in the order they run."""

    def lock_shared(self) -> None:
        """One writer at a time anyway."""

    def lock_exclusive(self) -> None:
        """One writer at a time anyway."""

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        if allowed is None:
            table = _TABLES[slot]
            [[total]] = _select(f"SELECT count(*) FROM {table} WHERE {table} MATCH %s", [_match(expression)])  # noqa: S608
        else:
            source, params = _joined(slot, expression, allowed)
            [[total]] = _select(f"SELECT count(*) {source}", params)
        return int(total)

    def candidates(
        self, slot: str, expression: Expression, allowed: Allowed, limit: int, without: Sequence[int] = ()
    ) -> list[Candidate]:
        source, params = _joined(slot, expression, allowed)
        # By rowid FTS5 itself gives the order, so that LIMIT ends the reading.
        return _candidates(
            f"{source} {leaving_out(without)} ORDER BY f.rowid DESC LIMIT %s", [*params, *without, limit]
        )

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        chosen = ", ".join(["%s"] * len(ids))
        source = f"FROM {_TABLES[slot]} f JOIN ({allowed.sql}) d ON d.id = f.rowid WHERE f.rowid IN ({chosen})"
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
        source, params = _joined(slot, expression, allowed)
        sql = f"SELECT d.id {source} {leaving_out(without)} ORDER BY {_ORDERS[order]} LIMIT %s OFFSET %s"
        return [number for (number,) in _select(sql, [*params, *without, limit, offset])]

    def matching(self, slot: str, expression: Expression) -> Any:
        table = _TABLES[slot]
        return RawSQL(f"SELECT rowid FROM {table} WHERE {table} MATCH %s", [_match(expression)])  # noqa: S608, S611


def _joined(slot: str, expression: Expression, allowed: Allowed) -> tuple[str, list[Any]]:
    """CROSS JOIN keeps the order: matches first, then each one's row by its key."""
    table = _TABLES[slot]
    source = f"FROM {table} f CROSS JOIN ({allowed.sql}) d ON d.id = f.rowid WHERE f.{table} MATCH %s"
    return source, [*allowed.params, _match(expression)]


def _match(expression: Expression) -> str:
    joined = (" AND " if expression.every else " OR ").join(_clause(clause) for clause in expression.clauses)
    return f"title : ({joined})" if expression.in_title else joined


def _clause(clause: Clause) -> str:
    return f"({' OR '.join(map(_token, clause))})"


def _token(token: Token) -> str:
    quoted = '"' + token.text.replace('"', '""') + '"'
    return ("title : " if token.in_title else "") + quoted + (" *" if token.is_prefix else "")


def _candidates(source: str, params: Sequence[Any]) -> list[Candidate]:
    columns = "d.id, d.kind, d.object_id, d.updated_at, d.length, d.title_key, f.title, f.body"
    rows = _select(f"SELECT {columns} {source}", params)
    return [Candidate._make((*row[:3], _aware(row[3]), *row[4:])) for row in rows]


def _select(sql: str, params: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _aware(stored: datetime) -> datetime:
    return stored.replace(tzinfo=UTC)
