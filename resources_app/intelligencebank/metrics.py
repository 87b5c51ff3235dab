"""Count events beside the runs themselves, by tenant, never by user or object."""

from typing import Any

import redis

from resources_app.intelligencebank.limiting import connection_to_redis

COUNTED = ("thumbnail_hits", "thumbnail_misses", "auth_failures")


def count(client_id: str, what: str) -> None:
    """Increment a counter. Losing it with Redis does no harm."""
    try:
        connection_to_redis().hincrby(_key(client_id), what, 1)
    except redis.RedisError:
        return


def counted(client_id: str) -> dict[str, int]:
    try:
        stored: Any = connection_to_redis().hgetall(_key(client_id))
    except redis.RedisError:
        return {}
    return {name: int(stored.get(name.encode(), 0)) for name in COUNTED}


def _key(client_id: str) -> str:
    return f"ib:{client_id}:counted"
