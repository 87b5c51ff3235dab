"""Resolve `Authorization: Bearer …` to the caller.

Each process caches a look-up briefly; streams check again.
"""

import hashlib
import time

from backlog_site.mcp.context import Caller
from backlog_site.serving.database_threads import in_thread
from resources_app.identity import credentials
from resources_app.identity.credentials import bearer_secret

__all__ = ["bearer_secret", "caller_with", "identify"]

BELIEVED_SECONDS = 2
MAX_BELIEVED = 10_000

_believed: dict[bytes, tuple[float, Caller]] = {}


async def caller_with(secret: str) -> Caller | None:
    """Return None when the token is unknown, revoked or expired, or its user is inactive."""
    key = hashlib.sha256(secret.encode(errors="replace")).digest()
    until, caller = _believed.get(key, (0.0, None))
    if caller and until > time.monotonic():
        return caller
    caller = await in_thread(identify, secret)
    _believed.pop(key, None)
    if caller:
        if len(_believed) >= MAX_BELIEVED:
            _believed.clear()
        _believed[key] = (time.monotonic() + BELIEVED_SECONDS, caller)
    return caller


def identify(secret: str) -> Caller | None:
    credential = credentials.recognise(secret)
    return Caller(credential, secret) if credential else None
