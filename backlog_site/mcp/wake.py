"""Publish one Redis message after a commit to wake all processes that wait for changes.

Losing it only adds delay.
"""

import time
from functools import cache

import redis
import structlog
from django.conf import settings
from django.db import connection, transaction
from redis.backoff import NoBackoff
from redis.retry import Retry

from resources_app.models import Change
from resources_app.models.base import Versioned

CHANNEL = "backlog:changes"
# A write waits this long for an unresponsive broker; then announcements pause for all writes.
PATIENCE_SECONDS = 0.5
PAUSE_SECONDS = 5

logger = structlog.get_logger("backlog.mcp")
_paused_until = 0.0


def after_commit(_change: Change, _thing: Versioned) -> None:
    """Schedule the announcement as a listener of changes.py.

    It runs inside the transaction, so a rollback drops the hook.
    """
    if all(hook is not announce for _, hook, *_ in connection.run_on_commit):
        transaction.on_commit(announce, robust=True)


def announce() -> None:
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    try:
        _broker().publish(CHANNEL, "")
    except redis.RedisError as error:
        _paused_until = time.monotonic() + PAUSE_SECONDS
        logger.warning("changes_not_announced", reason=str(error))


@cache
def _broker() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
