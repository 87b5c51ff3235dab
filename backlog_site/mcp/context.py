"""Hold the caller of the current request.

Transports set it; tools read it through `current_actor()`.
"""

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from django.contrib.auth.models import User

from resources_app.identity.credentials import Credential
from resources_app.identity.roles import Actor
from resources_app.reading.watching import Position


@dataclass(frozen=True)
class Caller:
    """Identify the owner of a token.

    It keeps the secret so that a long conversation can re-check it.
    """

    credential: Credential
    secret: str = field(repr=False)

    @property
    def user(self) -> User:
        return self.credential.user


class Watches(Protocol):
    """Store the subscriptions of a client of the handshake era."""

    async def add(self, uri: str, position: Position) -> None: ...

    async def remove(self, uri: str) -> None: ...


@dataclass(frozen=True)
class Request:
    """Hold the request of a caller.

    `is_authenticated` says that its transport has just checked the token. A pipe stays open for
    hours, so its requests check the token themselves.
    """

    caller: Caller
    request_id: str = ""
    address: str = ""
    watches: Watches | None = None
    is_authenticated: bool = False


_request: contextvars.ContextVar[Request] = contextvars.ContextVar("mcp_request")
_actor: contextvars.ContextVar[Actor] = contextvars.ContextVar("mcp_actor")


def current_actor() -> Actor:
    """Return the actor of the running tool, resource or prompt."""
    return _actor.get()


def current_request() -> Request:
    return _request.get()


def bind_request(request: Request) -> None:
    """Bind the request for the rest of the running task and the tasks it starts."""
    _request.set(request)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)
