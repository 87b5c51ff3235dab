"""Store sessions of the handshake era in Redis.

They are bound to their user and served by any web process.
"""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from redis.asyncio import Redis
from redis.exceptions import RedisError

from backlog_site.mcp.bus import MAX_WATCHES
from resources_app.errors import RateLimited, Unavailable
from resources_app.reading.watching import Position

IDLE_SECONDS = 24 * 3600


@dataclass(frozen=True)
class Session:
    id: str
    user_id: int
    protocol_version: str
    client: Any
    capabilities: Any
    # The client's stream received changes up to here; None before its first stream.
    position: Position | None


class SessionStore:
    """Store sessions in Redis. Every method raises `Unavailable` when Redis is down."""

    def __init__(self, redis: Redis) -> None:
        self._redis: Any = redis  # typed for both bytes and text; ours are text

    async def open(
        self, user_id: int, protocol_version: str, client: Any, capabilities: Any
    ) -> str:
        """Create a session and evict the user's least recently used ones beyond the limit."""
        session_id = secrets.token_urlsafe(32)
        fields = {
            "user": str(user_id),
            "version": protocol_version,
            "client": json.dumps(client),
            "capabilities": json.dumps(capabilities),
        }
        with _answering():
            async with self._redis.pipeline() as commands:
                commands.hset(_session(session_id), mapping=fields)
                commands.expire(_session(session_id), IDLE_SECONDS)
                commands.zadd(_of_user(user_id), {session_id: time.time()})
                commands.expire(_of_user(user_id), IDLE_SECONDS)
                commands.zrange(_of_user(user_id), 0, -settings.MCP_MAX_SESSIONS_PER_USER - 1)
                *_, surplus = await commands.execute()
            for unused in surplus:
                await self._forget(user_id, unused)
        return session_id

    async def find(self, session_id: str, user_id: int) -> Session | None:
        """Return None for a session that is unknown, ended or owned by another user.

        These cases are indistinguishable.
        """
        with _answering():
            fields = await self._redis.hgetall(_session(session_id))
            if fields.get("user") != str(user_id):
                return None
            async with self._redis.pipeline() as commands:
                commands.expire(_session(session_id), IDLE_SECONDS)
                commands.expire(_watches(session_id), IDLE_SECONDS)
                commands.expire(_of_user(user_id), IDLE_SECONDS)
                commands.zadd(_of_user(user_id), {session_id: time.time()}, xx=True)
                await commands.execute()
        return Session(
            id=session_id,
            user_id=user_id,
            protocol_version=fields["version"],
            client=json.loads(fields["client"]),
            capabilities=json.loads(fields["capabilities"]),
            position=Position.parse(fields["position"]) if fields.get("position") else None,
        )

    async def end(self, session: Session) -> None:
        with _answering():
            await self._forget(session.user_id, session.id)

    async def _forget(self, user_id: int, session_id: str) -> None:
        async with self._redis.pipeline() as commands:
            commands.delete(_session(session_id), _watches(session_id))
            commands.zrem(_of_user(user_id), session_id)
            await commands.execute()

    async def watch(self, session_id: str, uri: str, position: Position) -> None:
        with _answering():
            if await self._redis.hlen(_watches(session_id)) >= MAX_WATCHES:
                raise RateLimited(f"A session watches {MAX_WATCHES} addresses at most.")
            async with self._redis.pipeline() as commands:
                commands.hsetnx(_watches(session_id), uri, str(position))
                commands.expire(_watches(session_id), IDLE_SECONDS)
                await commands.execute()

    async def unwatch(self, session_id: str, *uris: str) -> None:
        with _answering():
            await self._redis.hdel(_watches(session_id), *uris)

    async def watches(self, session_id: str) -> dict[str, Position]:
        with _answering():
            kept = await self._redis.hgetall(_watches(session_id))
        return {uri: Position.parse(position) for uri, position in kept.items()}

    async def note_position(self, session_id: str, position: Position) -> None:
        with _answering():
            # Only into an existing session: setting a field would recreate an ended one.
            if not await self._redis.exists(_session(session_id)):
                return
            async with self._redis.pipeline() as commands:
                commands.hset(_session(session_id), "position", str(position))
                # A session that ended at this moment must still expire.
                commands.expire(_session(session_id), IDLE_SECONDS)
                await commands.execute()


def _session(session_id: str) -> str:
    return f"backlog:mcp:session:{session_id}"


def _watches(session_id: str) -> str:
    return f"backlog:mcp:watches:{session_id}"


def _of_user(user_id: int) -> str:
    return f"backlog:mcp:sessions-of:{user_id}"


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (RedisError, OSError) as error:
        raise Unavailable("Sessions are not available at the moment.") from error
