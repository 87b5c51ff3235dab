"""Exchange messages between web processes through Redis.

They announce changed sessions, new changes, and answers and cancellations that arrived at another
process than the one waiting for them.
"""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from backlog_site.mcp import wake
from resources_app.errors import Unavailable

CHANNEL = "backlog:mcp"
# Longer than a round trip under a burst of requests, shorter than a client's timeout.
PATIENCE_SECONDS = 5
RECONNECT_SECONDS = 1
MAX_CONNECTIONS = 16

Listener = Callable[[dict[str, Any]], None]

logger = structlog.get_logger("backlog.mcp")


def connect() -> Redis:
    """Return a client with a short timeout: a broker that is down must not hang requests that do
    not need it.

    Limits the connections: hundreds of clients that reconnect at once queue instead of each opening
    one.
    """
    pool = BlockingConnectionPool.from_url(
        settings.REDIS_URL,
        max_connections=MAX_CONNECTIONS,
        timeout=4 * PATIENCE_SECONDS,
        decode_responses=True,
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=Retry(NoBackoff(), 0),
    )
    return Redis.from_pool(pool)


class Backchannel:
    def __init__(self, redis: Redis, on_changes: Callable[[], None]) -> None:
        self._redis = redis
        self._on_changes = on_changes
        self._listeners: dict[str, Listener] = {}
        self._on_reconnect: list[Callable[[], None]] = []

    def on(self, topic: str, listener: Listener) -> None:
        self._listeners[topic] = listener

    def on_reconnect(self, callback: Callable[[], None]) -> None:
        """Register a callback for reconnects, when messages may have been missed."""
        self._on_reconnect.append(callback)

    async def tell(self, topic: str, **message: Any) -> None:
        """Publish a message to every process, including this one."""
        try:
            await self._redis.publish(CHANNEL, json.dumps({"topic": topic, **message}))
        except (RedisError, OSError) as error:
            raise Unavailable("The other web processes cannot be reached at the moment.") from error

    async def run(self) -> None:
        while True:
            try:
                await self._read()
            except (RedisError, OSError) as error:
                logger.warning("mcp_backchannel_lost", reason=str(error))
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _read(self) -> None:
        async with self._redis.pubsub(ignore_subscribe_messages=True) as subscription:
            await subscription.subscribe(CHANNEL, wake.CHANNEL)
            self._on_changes()
            for callback in self._on_reconnect:
                callback()
            receive = partial(subscription.get_message, timeout=PATIENCE_SECONDS)
            while True:
                if message := await receive():
                    self._dispatch(message)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if message["channel"] == wake.CHANNEL:
            self._on_changes()
            return
        body = json.loads(message["data"])
        if listener := self._listeners.get(body.pop("topic")):
            listener(body)
