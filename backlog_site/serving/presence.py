"""Announce every process of the site in Redis, so that `doctor` can name missing or misconfigured
ones.
"""

import hashlib
import json
import os
import socket
import threading
from dataclasses import asdict, dataclass

import structlog
from django.conf import settings
from django.utils.crypto import salted_hmac
from redis import Redis
from redis.exceptions import RedisError

ANNOUNCE_SECONDS = 20
# A process that died silently expires after this.
EXPIRE_SECONDS = 90
REDIS_TIMEOUT_SECONDS = 2

logger = structlog.get_logger("backlog.presence")


@dataclass(frozen=True)
class Process:
    kind: str
    host: str
    pid: int
    key_fingerprint: str

    def __str__(self) -> str:
        return f"{self.kind} on {self.host} (process {self.pid})"


def announce(kind: str) -> None:
    """Announce this process now and every few seconds until it ends."""
    threading.Thread(
        target=_keep_announcing, args=[_this_process(kind)], name="presence", daemon=True
    ).start()


def announced() -> list[Process]:
    """Return the processes that announced themselves lately.

    Raises RedisError when Redis is down.
    """
    with _redis() as client:
        names = list(client.scan_iter(f"{_prefix()}*"))
        values = client.mget(names) if names else []
    return [Process(**json.loads(value)) for value in values if value]


def key_fingerprint() -> str:
    """Return a value that is equal in processes with the same SECRET_KEY and does not reveal it."""
    return salted_hmac("backlog.presence", "SECRET_KEY").hexdigest()[:16]


def _this_process(kind: str) -> Process:
    return Process(kind, socket.gethostname(), os.getpid(), key_fingerprint())


def _keep_announcing(process: Process) -> None:
    pause = threading.Event()
    while True:
        try:
            with _redis() as client:
                name = f"{_prefix()}{process.kind}:{process.host}:{process.pid}"
                client.set(name, json.dumps(asdict(process)), ex=EXPIRE_SECONDS)
        except RedisError as error:
            logger.debug("presence_not_announced", reason=str(error))
        pause.wait(ANNOUNCE_SECONDS)


def _prefix() -> str:
    """Return a key prefix per site, for sites that share a Redis.

    All processes of a site have the same public address.
    """
    return f"backlog:presence:{hashlib.sha256(settings.PUBLIC_URL.encode()).hexdigest()[:12]}:"


def _redis() -> Redis:
    return Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=REDIS_TIMEOUT_SECONDS,
        socket_connect_timeout=REDIS_TIMEOUT_SECONDS,
    )
