"""Rate-limit the calls of all workers in Redis: per account and minute, evenly spread, and per
tenant and day.
"""

import math
import time
from datetime import UTC, datetime
from functools import cache

import redis
from django.conf import settings

from resources_app.intelligencebank.failures import BudgetSpent
from resources_app.models.ib import HARD_CAP, IBConnection

# Both windows are checked atomically with the server's clock: no call can slip between check and
# count.
_SCRIPT = """
local now = redis.call('TIME')
local at = now[1] * 1000000 + now[2]
local window, most, short = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local burst, budget = tonumber(ARGV[4]), tonumber(ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at - window)
local spent = tonumber(redis.call('GET', KEYS[2]) or '0')
if spent >= budget then return -1 end
local function wait(span, limit)
  local from = '(' .. string.format('%.0f', at - span)
  local used = redis.call('ZCOUNT', KEYS[1], from, '+inf')
  if used < limit then return 0 end
  local oldest = redis.call(
    'ZRANGEBYSCORE', KEYS[1], from, '+inf', 'WITHSCORES', 'LIMIT', used - limit, 1
  )
  return tonumber(oldest[2]) + span - at
end
local pause = math.max(wait(window, most), wait(short, burst))
if pause > 0 then return pause end
local score = string.format('%.0f', at)
redis.call('ZADD', KEYS[1], score, score .. '-' .. redis.call('INCR', KEYS[1] .. ':n'))
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1000)
redis.call('PEXPIRE', KEYS[1] .. ':n', 86400000)
redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], 172800)
return 0
"""
UNCOUNTED_SECONDS = 30.0


@cache
def connection_to_redis() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=2)


class SharedPace:
    """Wait until one more call is within the limit. If calls cannot be counted, none are made."""

    def __init__(self, connection: IBConnection, longest_wait: float = math.inf) -> None:
        self.client_id = connection.client_id
        self.per_minute = min(connection.calls_per_minute, HARD_CAP)
        self.budget = connection.daily_budget
        self.longest_wait = longest_wait
        self.calls = 0

    def __call__(self, user_uuid: str) -> None:
        while (pause := self._ask(user_uuid) / 1_000_000) > 0:
            if pause > self.longest_wait:
                raise BudgetSpent("Too many calls in the last minute.", pause)
            time.sleep(pause)
        self.calls += 1

    def _ask(self, user_uuid: str) -> float:
        window = float(settings.IB_RATE_SECONDS)
        keys = [f"ib:{self.client_id}:calls:{user_uuid}", self.budget_key()]
        short, burst = window / 60, math.ceil(self.per_minute / 60)
        limits = [int(window * 1e6), self.per_minute, int(short * 1e6), burst, self.budget]
        try:
            script = connection_to_redis().register_script(_SCRIPT)
            pause = float(script(keys=keys, args=limits))
        except redis.RedisError:
            raise BudgetSpent(
                "Calls cannot be counted: Redis does not answer.", UNCOUNTED_SECONDS
            ) from None
        if pause < 0:
            raise BudgetSpent("Today's API call budget is exhausted.", _seconds_to_midnight())
        return pause

    def budget_key(self) -> str:
        return f"ib:{self.client_id}:budget:{datetime.now(UTC):%Y-%m-%d}"


def spent_today(connection: IBConnection) -> int | None:
    """Return today's call count, or None if Redis does not answer."""
    try:
        spent = connection_to_redis().get(SharedPace(connection).budget_key())
    except redis.RedisError:
        return None
    return int(spent or 0)


def _seconds_to_midnight() -> float:
    now = datetime.now(UTC)
    return 86_400 - (now.hour * 3600 + now.minute * 60 + now.second)
