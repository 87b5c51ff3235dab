"""Long jobs write in time slices: short transactions with a gap in which other writers get the lock.

SQLite has one write lock for the whole database. A job that holds it for seconds makes every request fail with 503.
"""

import time
from collections.abc import Collection, Iterator
from typing import TypeVar

T = TypeVar("T")

# How long one write transaction of a job may last, and how long it then leaves the lock to others.
BUDGET_SECONDS = 0.05
GAP_SECONDS = 0.01

clock = time.monotonic
pause = time.sleep


def time_slices(items: Collection[T]) -> Iterator[Iterator[T]]:
    """Yield the items in parts. Write each part in a transaction of its own.

    A part ends when its budget is used up, and holds one item at least. The items must be ready to be written: what has
    to be read or parsed first would be read inside the transaction.
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
