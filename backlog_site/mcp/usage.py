"""Record in Redis when each credential last called over MCP.

Only the Connect page uses it, to await the first call.
"""

import time
from datetime import datetime
from functools import cache

import redis
import structlog
from django.conf import settings
from django.utils import timezone
from redis.backoff import NoBackoff
from redis.retry import Retry

from resources_app.identity.credentials import Credential, Kind

KEPT_SECONDS = 90 * 24 * 3600
NOTED_EVERY_SECONDS = 60
PATIENCE_SECONDS = 0.5
MAX_REMEMBERED = 10_000

logger = structlog.get_logger("backlog.mcp")
# Monotonic time until which this process need not note a credential again.
_noted: dict[tuple[Kind, int], float] = {}


def is_due(credential: Credential) -> bool:
    """Return whether this process has not noted the credential for a while."""
    return _noted.get(credential.key, 0.0) < time.monotonic()


def note(credential: Credential) -> None:
    """Record the time of the call. While Redis is down only the record is lost."""
    if len(_noted) >= MAX_REMEMBERED:
        _noted.clear()
    _noted[credential.key] = time.monotonic() + NOTED_EVERY_SECONDS
    try:
        _broker().set(_key(*credential.key), timezone.now().isoformat(), ex=KEPT_SECONDS)
    except redis.RedisError as error:
        logger.warning("mcp_call_not_noted", reason=str(error))


def call_since(kind: Kind, number: int, since: datetime) -> datetime | None:
    """Return the time of the last call after `since`.

    An earlier one may belong to another database on the same Redis.
    """
    try:
        kept = _broker().get(_key(kind, number))
    except redis.RedisError:
        return None
    if not isinstance(kept, bytes):
        return None
    called_at = datetime.fromisoformat(kept.decode())
    return called_at if called_at >= since else None


def _key(kind: Kind, number: int) -> str:
    return f"backlog:mcp:called:{kind}:{number}"


@cache
def _broker() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
