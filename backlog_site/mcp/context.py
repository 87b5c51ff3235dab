"""Who is behind the request that is being served: set by the transports, read by tools through `current_actor()`."""

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
    """Who a token stands for. The secret stays here so that a long conversation can ask whether it still holds."""

    credential: Credential
    secret: str = field(repr=False)

    @property
    def user(self) -> User:
        return self.credential.user


class Watches(Protocol):
    """Where a client of the handshake era keeps what it has subscribed to."""

    async def add(self, uri: str, position: Position) -> None: ...

    async def remove(self, uri: str) -> None: ...


@dataclass(frozen=True)
class Request:
    caller: Caller
    request_id: str = ""
    address: str = ""
    watches: Watches | None = None


_request: contextvars.ContextVar[Request] = contextvars.ContextVar("mcp_request")
_actor: contextvars.ContextVar[Actor] = contextvars.ContextVar("mcp_actor")


def current_actor() -> Actor:
    """In whose name the running tool, resource or prompt acts."""
    return _actor.get()


def current_request() -> Request:
    return _request.get()


def bind_request(request: Request) -> None:
    """For the rest of the running task and the tasks it starts."""
    _request.set(request)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    token = _actor.set(actor)
    try:
        yield
    finally:
        _actor.reset(token)
