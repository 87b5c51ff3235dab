"""Find passages semantically near to a query. The signs of all vectors are in memory; the best are
compared exactly.

Filters and visibility are included: when too few of the nearest are allowed, only allowed passages
are scanned.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from search_app.backends.base import Allowed
from search_app.semantic.minilm import Floats
from search_app.semantic.vectors import CODE_WORDS, code_of, cosines

# Number of exact comparisons, and how many of them must be allowed to skip the second scan.
COMPARED, ENOUGH = 500, 50
_NEWER = "SELECT id, kind, object_id, code FROM search_app_passage WHERE id > %s ORDER BY id"
_JOIN = "d.kind = p.kind AND d.object_id = p.object_id"


class _Snapshot:
    """Cache the codes of one process.

    It only grows, except for passages that newer ones replace.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.forget()

    def forget(self) -> None:
        self.ids: NDArray[np.int64] = np.empty(0, np.int64)
        self.codes: NDArray[np.uint64] = np.empty((0, CODE_WORDS), np.uint64)
        self._things: NDArray[Any] = np.empty(0, "U32")

    def current(self) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        with self._lock:
            [(newest,)] = _select("SELECT coalesce(max(id), 0) FROM search_app_passage", [])
            last = int(self.ids[-1]) if len(self.ids) else 0
            if newest < last:
                self.forget()
                last = 0
            if newest > last:
                self._add(_select(_NEWER, [last]))
            return self.ids, self.codes

    def _add(self, rows: Sequence[Any]) -> None:
        things = np.array([f"{row[1]} {row[2]}" for row in rows], "U32")
        codes = np.frombuffer(b"".join(bytes(row[3]) for row in rows), np.uint64).reshape(
            -1, CODE_WORDS
        )
        kept = ~np.isin(self._things, things)
        self.ids = np.concatenate([self.ids[kept], np.array([row[0] for row in rows], np.int64)])
        self.codes = np.concatenate([self.codes[kept], codes])
        self._things = np.concatenate([self._things[kept], things])


SNAPSHOT = _Snapshot()


def nearest(query: Floats, allowed: Allowed) -> dict[int, float]:
    """Return the nearest documents, each by its best passage."""
    ids, codes = SNAPSHOT.current()
    differing = np.bitwise_count(codes ^ np.frombuffer(code_of(query), np.uint64)).sum(axis=1)
    found = _allowed_among(_best(ids, differing), allowed, query)
    if len(found) >= ENOUGH or len(ids) <= COMPARED:
        return found
    mask = np.isin(ids, np.array(_allowed_passages(allowed), np.int64))
    return _allowed_among(_best(ids[mask], differing[mask]), allowed, query)


def similarity(query: Floats, documents: Sequence[int]) -> dict[int, float]:
    """Return the similarity of documents that the caller may see."""
    if not documents:
        return {}
    rows = _select(
        f"SELECT d.id, p.vector FROM search_app_document d JOIN search_app_passage p ON {_JOIN}"  # noqa: S608
        f" WHERE d.id IN ({_places(documents)})",
        documents,
    )
    return _best_of_each(rows, query)


def _best(ids: NDArray[np.int64], differing: NDArray[Any]) -> list[int]:
    if len(ids) <= COMPARED:
        return [int(number) for number in ids]
    return [int(number) for number in ids[np.argsort(differing, kind="stable")[:COMPARED]]]


def _allowed_among(passages: Sequence[int], allowed: Allowed, query: Floats) -> dict[int, float]:
    if not passages:
        return {}
    rows = _select(
        f"SELECT d.id, p.vector FROM search_app_passage p CROSS JOIN ({allowed.sql}) d"  # noqa: S608
        f" WHERE {_JOIN} AND p.id IN ({_places(passages)})",
        [*allowed.params, *passages],
    )
    return _best_of_each(rows, query)


def _allowed_passages(allowed: Allowed) -> list[int]:
    sql = f"SELECT p.id FROM ({allowed.sql}) d CROSS JOIN search_app_passage p WHERE {_JOIN}"  # noqa: S608
    return [number for (number,) in _select(sql, allowed.params)]


def _best_of_each(rows: Sequence[Any], query: Floats) -> dict[int, float]:
    if not rows:
        return {}
    best: dict[int, float] = {}
    for (number, _), score in zip(
        rows, cosines([bytes(row[1]) for row in rows], query), strict=True
    ):
        best[number] = max(best.get(number, -1.0), round(float(score), 6))
    return best


def _places(values: Sequence[Any]) -> str:
    return ", ".join(["%s"] * len(values))


def _select(sql: str, params: Iterable[Any] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, list(params))
        return list(cursor.fetchall())
