"""While the database is unreachable every surface says 503 and when to come back, pages in words for people."""

import asyncio
from typing import Any

import httpx
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.test import Client

from backlog_site.asgi import application
from backlog_site.outage import outage


async def answers_to(*requests: tuple[str, str]) -> list[httpx.Response]:
    transport: Any = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        return [await client.request(method, path) for method, path in requests]


def test_every_surface_is_refused_at_once_during_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the database mark: a query would fail the test."""
    monkeypatch.setattr(outage, "is_on", True)
    page, rest, mcp, alive = asyncio.run(
        answers_to(("GET", "/board/"), ("GET", "/api/v1/tasks/"), ("POST", "/mcp"), ("GET", "/healthz"))
    )
    assert [one.status_code for one in (page, rest, mcp, alive)] == [503, 503, 503, 200]
    assert all(one.headers["retry-after"] for one in (page, rest, mcp))
    assert "unreachable" in page.text and page.headers["content-type"].startswith("text/html")
    assert rest.json()["error"]["code"] == mcp.json()["error"]["data"]["code"] == "unavailable"


def test_a_page_that_meets_a_lost_database_answers_503(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: SessionStore) -> Any:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(SessionStore, "load", lost)
    monkeypatch.setattr(outage, "suspect", lambda error: None)
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    answer = client.get("/board/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "unreachable" in answer.content.decode()
