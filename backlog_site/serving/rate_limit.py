"""Count requests for rate limits in Redis across all processes, or per process while Redis is
down.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from django.conf import settings
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

PATIENCE_SECONDS = 0.5
PAUSE_SECONDS = 5
MAX_CONNECTIONS = 16
MAX_REMEMBERED = 10_000

# Atomic in Redis: no request can come between the increment and the expiry.
_COUNT = """
local answers = {}
for index, key in ipairs(KEYS) do
  local count = redis.call('INCR', key)
  if count == 1 then redis.call('PEXPIRE', key, ARGV[index]) end
  answers[index * 2 - 1] = count
  answers[index * 2] = redis.call('PTTL', key)
end
return answers
"""

logger = structlog.get_logger("backlog.rates")


@dataclass(frozen=True)
class Rate:
    """Allow at most `allowed` requests within `seconds`, counted from the first."""

    name: str
    allowed: int
    seconds: int


@dataclass(frozen=True)
class Usage:
    """Hold a caller's usage of one rate after this request."""

    rate: Rate
    used: int
    resets_in: float

    @property
    def is_exceeded(self) -> bool:
        return self.used > self.rate.allowed

    @property
    def remaining(self) -> int:
        return max(0, self.rate.allowed - self.used)


Subject = tuple[Rate, str]


class Counter:
    def __init__(self, patience: float = PATIENCE_SECONDS) -> None:
        pool = BlockingConnectionPool.from_url(
            settings.REDIS_URL,
            max_connections=MAX_CONNECTIONS,
            timeout=patience,
            socket_timeout=patience,
            socket_connect_timeout=patience,
            retry=Retry(NoBackoff(), 0),
        )
        self._count: Callable[..., Awaitable[Any]] = Redis.from_pool(pool).register_script(_COUNT)
        self._here = LocalCounter()
        self._paused_until = 0.0

    async def count(self, subjects: list[Subject]) -> list[Usage]:
        """Count one more request for each subject.

        Without Redis every process counts separately: still bounded, less exact.
        """
        if time.monotonic() < self._paused_until:
            return self._here.count(subjects)
        try:
            answer = await self._count(
                keys=[_key(rate, who) for rate, who in subjects],
                args=[rate.seconds * 1000 for rate, _ in subjects],
            )
        except (RedisError, OSError) as error:
            self._paused_until = time.monotonic() + PAUSE_SECONDS
            logger.warning("rates_counted_locally", reason=str(error))
            return self._here.count(subjects)
        pairs = zip(answer[::2], answer[1::2], strict=True)
        return [
            Usage(rate, used, left / 1000)
            for (rate, _), (used, left) in zip(subjects, pairs, strict=True)
        ]


class LocalCounter:
    """Count in the memory of one process, and bound the number of callers it remembers per rate."""

    def __init__(self) -> None:
        self._windows: defaultdict[Rate, dict[str, tuple[int, float]]] = defaultdict(dict)

    def count(self, subjects: list[Subject]) -> list[Usage]:
        now = time.monotonic()
        return [self._count_one(rate, who, now) for rate, who in subjects]

    def _count_one(self, rate: Rate, who: str, now: float) -> Usage:
        used, ends = self._windows[rate].get(who, (0, 0.0))
        if ends <= now:
            self._make_room(rate, now)
            used, ends = 0, now + rate.seconds
        self._windows[rate][who] = (used + 1, ends)
        return Usage(rate, used + 1, ends - now)

    def _make_room(self, rate: Rate, now: float) -> None:
        """Evict half at once so that a flood of bogus tokens stays O(1).

        Addresses are counted separately.
        """
        if len(self._windows[rate]) < MAX_REMEMBERED:
            return
        live = [(who, window) for who, window in self._windows[rate].items() if window[1] > now]
        self._windows[rate] = dict(live[-MAX_REMEMBERED // 2 :])


def _key(rate: Rate, who: str) -> str:
    return f"backlog:rate:{rate.name}:{who}"
