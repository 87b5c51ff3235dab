"""What is counted besides the runs themselves. By tenant, never by person or thing."""

from typing import Any

import redis

from resources_app.intelligencebank.limiting import connection_to_redis

COUNTED = ("thumbnail_hits", "thumbnail_misses", "auth_failures")


def count(client_id: str, what: str) -> None:
    """A number that is lost with Redis costs nobody anything."""
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
