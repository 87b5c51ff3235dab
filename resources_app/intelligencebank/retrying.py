"""Retry calls: classify failures, compute backoff, and give up."""

import math
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

from resources_app.intelligencebank.failures import Unreachable

T = TypeVar("T")
MAX_ATTEMPTS = 6
FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
LONGEST_RETRY_AFTER = 900.0


@dataclass(frozen=True)
class Patience:
    """Retry with full jitter, so that many workers do not retry at the same moment.

    `seconds` is the total budget.
    """

    attempts: int = MAX_ATTEMPTS
    seconds: float = math.inf
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = field(default=random.random)
    clock: Callable[[], float] = time.monotonic

    def persist(self, call: Callable[[], T]) -> T:
        until = self.clock() + self.seconds
        for attempt in range(1, self.attempts):
            try:
                return call()
            except Unreachable as failure:
                wait = self.delay(attempt, failure.retry_after)
                if self.clock() + wait > until:
                    raise
                self.sleep(wait)
        return call()

    def delay(self, attempt: int, retry_after: float | None) -> float:
        if retry_after is not None:
            return min(max(retry_after, 0.0), LONGEST_RETRY_AFTER)
        return self.jitter() * min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (attempt - 1))


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Parse seconds or a date. Invalid values count as absent."""
    given = headers.get("retry-after", "").strip()
    if given.isascii() and given.isdigit():
        return float(given[:9])
    try:
        at = parsedate_to_datetime(given)
    except (ValueError, TypeError, OverflowError):
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
