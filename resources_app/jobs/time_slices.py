"""Split the writes of long jobs into time slices: short transactions with gaps in which other
writers get the lock.

SQLite has one write lock for the whole database. A job that holds it for seconds makes every
request fail with 503.
"""

import time
from collections.abc import Collection, Iterator
from typing import TypeVar

T = TypeVar("T")

# Maximum duration of one write transaction of a job, and the gap that leaves the lock to other
# writers.
BUDGET_SECONDS = 0.05
GAP_SECONDS = 0.01

clock = time.monotonic
pause = time.sleep


def time_slices(items: Collection[T]) -> Iterator[Iterator[T]]:
    """Yield the items in parts. Write each part in a separate transaction.

    A part ends when its time budget is used up and holds at least one item. The items must be ready
    to write, because reading or parsing them would happen inside the transaction.
    """
    remaining = iter(items)
    for first in remaining:
        yield _part(first, remaining)
        pause(GAP_SECONDS)


def _part(first: T, remaining: Iterator[T]) -> Iterator[T]:
    deadline = clock() + BUDGET_SECONDS
    yield first
    while clock() < deadline:
        try:
            yield next(remaining)
        except StopIteration:
            return
