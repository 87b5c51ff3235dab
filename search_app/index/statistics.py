"""Count documents, their average length and word frequencies.

Exact; only large numbers are cached.
"""

from typing import NamedTuple

from django.db.models import Avg, Count

from search_app.backends import backend
from search_app.backends.base import Clause, Expression
from search_app.index import rows
from search_app.models import Document

# Numbers from here on are cached until this many documents were added, which moves no rank
# noticeably.
LARGE = 3000
BLOCK = 1024


class Statistics(NamedTuple):
    documents: int
    average_length: float


class _Memory:
    """Cache the numbers of one block of documents at a time, so that the cache stays small."""

    block: tuple[str, int] = ("", 0)
    statistics: Statistics | None = None
    frequencies: dict[Clause, int] = {}


def statistics(slot: str) -> Statistics:
    # Across both slots: within one, the database would have to sort.
    newest = rows.newest()
    block = (slot, newest // BLOCK)
    if _Memory.block != block:
        _Memory.block, _Memory.statistics, _Memory.frequencies = block, None, {}
    if _Memory.statistics is None:
        counted = Document.objects.filter(slot=slot).aggregate(
            documents=Count("pk"), length=Avg("length")
        )
        found = Statistics(counted["documents"], counted["length"] or 1.0)
        if found.documents < LARGE:
            return found
        _Memory.statistics = found
    return _Memory.statistics


def frequency(slot: str, clause: Clause) -> int:
    """Return the frequency in the whole index.

    Call `statistics` first, which drops stale entries.
    """
    if (known := _Memory.frequencies.get(clause)) is not None:
        return known
    counted = backend().count(slot, Expression((clause,)))
    if counted >= LARGE and _Memory.block[0] == slot:
        _Memory.frequencies[clause] = counted
    return counted
