"""PostgreSQL: a GIN index over a tsvector made of our own tokens. It matches and counts; scores are made above."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models.expressions import RawSQL

from search_app.backends.base import Allowed, Candidate, Clause, Expression, Order, Text, Token, leaving_out

_TABLES = {"a": "search_text_a", "b": "search_text_b"}
_ORDERS = {"newest": "d.id DESC", "recent": "d.updated_at DESC, d.kind, d.object_id"}
# The number of an advisory lock; any will do that nobody else takes.
_LOCK = 0x5EA2C4


class PostgresBackend:
    def write(self, slot: str, texts: Mapping[int, Text]) -> None:
        rows = [(number, text.title, text.body, _vector(text)) for number, text in texts.items()]
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {_TABLES[slot]} (document_id, title, body, terms) VALUES (%s, %s, %s, %s::tsvector)"  # noqa: S608
                " ON CONFLICT (document_id) DO UPDATE"
                " SET title = EXCLUDED.title, body = EXCLUDED.body, terms = EXCLUDED.terms",
                rows,
            )

    def remove(self, slot: str, ids: Sequence[int]) -> None:
        _execute(f"DELETE FROM {_TABLES[slot]} WHERE document_id = ANY(%s)", [list(ids)])  # noqa: S608

    def clear(self, slot: str) -> None:
        _execute(f"TRUNCATE {_TABLES[slot]}")

    def settle(self, slot: str) -> None:
        _execute(f"ANALYZE {_TABLES[slot]}, search_app_document")

    def lock_shared(self) -> None:
        _execute("SELECT pg_advisory_xact_lock_shared(%s)", [_LOCK])

    def lock_exclusive(self) -> None:
        _execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])

    def count(self, slot: str, expression: Expression, allowed: Allowed | None = None) -> int:
        if allowed is None:
            sql = f"SELECT count(*) FROM {_TABLES[slot]} WHERE terms @@ %s::tsquery"  # noqa: S608
            [[total]] = _select(sql, [_match(expression)])
        else:
            source, params = _joined(slot, expression, allowed)
            [[total]] = _select(f"SELECT count(*) {source}", params)
        return int(total)

    def candidates(
        self, slot: str, expression: Expression, allowed: Allowed, limit: int, without: Sequence[int] = ()
    ) -> list[Candidate]:
        source, params = _joined(slot, expression, allowed)
        return _candidates(f"{source} {leaving_out(without)} ORDER BY d.id DESC LIMIT %s", [*params, *without, limit])

    def among(self, slot: str, ids: Sequence[int], allowed: Allowed) -> list[Candidate]:
        chosen = ", ".join(["%s"] * len(ids))
        source = (
            f"FROM {_TABLES[slot]} f JOIN ({allowed.sql}) d ON d.id = f.document_id WHERE f.document_id IN ({chosen})"
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
        source, params = _joined(slot, expression, allowed)
        sql = f"SELECT d.id {source} {leaving_out(without)} ORDER BY {_ORDERS[order]} LIMIT %s OFFSET %s"
        return [number for (number,) in _select(sql, [*params, *without, limit, offset])]

    def matching(self, slot: str, expression: Expression) -> Any:
        sql = f"SELECT document_id FROM {_TABLES[slot]} WHERE terms @@ %s::tsquery"  # noqa: S608
        return RawSQL(sql, [_match(expression)])  # noqa: S611


def _joined(slot: str, expression: Expression, allowed: Allowed) -> tuple[str, list[Any]]:
    source = f"FROM {_TABLES[slot]} f JOIN ({allowed.sql}) d ON d.id = f.document_id WHERE f.terms @@ %s::tsquery"
    return source, [*allowed.params, _match(expression)]


def _match(expression: Expression) -> str:
    return (" & " if expression.every else " | ").join(
        _clause(clause, expression.in_title) for clause in expression.clauses
    )


def _clause(clause: Clause, in_title: bool) -> str:
    return f"({' | '.join(_token(token, in_title) for token in clause)})"


def _token(token: Token, in_title: bool) -> str:
    marks = ("*" if token.is_prefix else "") + ("A" if in_title or token.in_title else "")
    return _quoted(token.text) + (f":{marks}" if marks else "")


def _vector(text: Text) -> str:
    """Which tokens there are, those of the title marked A. How often each occurs is counted in the text itself.

    Each has a place: PostgreSQL takes one without for a match of every mark.
    """
    title, body = set(text.title.split()), set(text.body.split())
    lexemes = [f"{_quoted(token)}:1A" for token in title]
    return " ".join(lexemes + [f"{_quoted(token)}:1" for token in body - title])


def _quoted(token: str) -> str:
    return "'" + token.replace("\\", "\\\\").replace("'", "''") + "'"


def _candidates(source: str, params: Sequence[Any]) -> list[Candidate]:
    columns = "d.id, d.kind, d.object_id, d.updated_at, d.length, d.title_key, f.title, f.body"
    return [Candidate._make(row) for row in _select(f"SELECT {columns} {source}", params)]


def _select(sql: str, params: Sequence[Any]) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return list(cursor.fetchall())


def _execute(sql: str, params: Sequence[Any] = ()) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
