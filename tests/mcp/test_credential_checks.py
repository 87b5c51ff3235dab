"""Test how often the token of a request is checked: once, by its transport or by its middleware."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from mcp import MCPError

from backlog_site.mcp import auth
from backlog_site.mcp.context import Caller, Request, bind_request, current_actor
from backlog_site.mcp.server import act_for_caller
from resources_app.identity.credentials import Credential

pytestmark = pytest.mark.django_db

UNKNOWN = "bl_" + "x" * 43


async def answer(_ctx: Any) -> str:
    return current_actor().agent


def served(request: Request) -> Any:
    async def serve() -> Any:
        bind_request(request)
        ctx: Any = SimpleNamespace(session=SimpleNamespace(client_params=None))
        return await act_for_caller(ctx, answer)

    return asyncio.run(serve())


@pytest.fixture
def caller(monkeypatch: pytest.MonkeyPatch) -> Caller:
    monkeypatch.setattr("backlog_site.mcp.usage.is_due", lambda credential: False)
    monkeypatch.setattr(auth, "identify", lambda secret: None)
    return Caller(Credential("token", 1, User(username="bob"), "read", "a token"), UNKNOWN)


def test_what_the_transport_has_checked_is_not_checked_again(caller: Caller) -> None:
    assert served(Request(caller, is_authenticated=True)) == "a token"


def test_a_request_of_a_pipe_is_checked(caller: Caller) -> None:
    with pytest.raises(MCPError, match="no longer valid"):
        served(Request(caller))
