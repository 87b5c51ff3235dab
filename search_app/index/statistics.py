"""How many documents there are, how long, and how many have a word. Exact; only large numbers are remembered a while."""

from typing import NamedTuple

from django.db.models import Avg, Count

from search_app.backends import backend
from search_app.backends.base import Clause, Expression
from search_app.index import rows
from search_app.models import Document

# From here on a number is remembered until this many documents were added: it moves no rank noticeably.
LARGE = 3000
BLOCK = 1024


class Statistics(NamedTuple):
    documents: int
    average_length: float


class _Memory:
    """Of one block of documents at a time, so that it stays small."""

    block: tuple[str, int] = ("", 0)
    statistics: Statistics | None = None
    frequencies: dict[Clause, int] = {}


def statistics(slot: str) -> Statistics:
    # Of either slot: within one, the database would have to sort.
    newest = rows.newest()
    block = (slot, newest // BLOCK)
    if _Memory.block != block:
        _Memory.block, _Memory.statistics, _Memory.frequencies = block, None, {}
    if _Memory.statistics is None:
        counted = Document.objects.filter(slot=slot).aggregate(documents=Count("pk"), length=Avg("length"))
        found = Statistics(counted["documents"], counted["length"] or 1.0)
        if found.documents < LARGE:
            return found
        _Memory.statistics = found
    return _Memory.statistics


def frequency(slot: str, clause: Clause) -> int:
    """In the whole index. Call `statistics` first: it forgets what is too old."""
    if (known := _Memory.frequencies.get(clause)) is not None:
        return known
    counted = backend().count(slot, Expression((clause,)))
    if counted >= LARGE and _Memory.block[0] == slot:
        _Memory.frequencies[clause] = counted
    return counted
