"""Test the site as a server calls it: pages and REST in persistent threads, static files beside
them, all behind one entry.
"""

import asyncio
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from backlog_site.asgi import application
from backlog_site.serving.outage import outage
from resources_app.identity import tokens


async def answers_to(*paths: str, secret: str) -> list[httpx.Response]:
    transport: Any = httpx.ASGITransport(application)
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=headers
    ) as client:
        return list(await asyncio.gather(*(client.get(path) for path in paths)))


async def answers_before_and_during_an_outage(
    before: list[str], during: list[str], secret: str
) -> tuple[list[httpx.Response], list[httpx.Response]]:
    answered = await answers_to(*before, secret=secret)
    outage.is_on = True
    try:
        return answered, await answers_to(*during, secret=secret)
    finally:
        outage.is_on = False


# One test, because the site's Redis connections belong to the event loop that first used them.
@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_pages_files_and_many_requests_are_answered_alike_and_refused_alike_during_an_outage(
    alice: User,
) -> None:
    secret = tokens.create(alice, "many", "read")[1]
    paths = [
        "/login/",
        "/static/viewer/app.css",
        "/static/none.css",
        "/none/",
        *["/api/v1/tasks/"] * 60,
    ]
    away = ["/board/", "/api/v1/tasks/", "/mcp", "/healthz"]
    before, during = asyncio.run(answers_before_and_during_an_outage(paths, away, secret))
    page, file, no_file, no_page, *many = before
    assert page.status_code == file.status_code == 200
    assert page.headers["content-security-policy"] == file.headers["content-security-policy"]
    assert (
        file.headers["content-type"].startswith("text/css")
        and file.headers["content-encoding"] == "gzip"
    )
    assert no_file.status_code == no_page.status_code == 404
    assert {answer.status_code for answer in many} == {200}
    page, rest, mcp, _ = during
    assert [one.status_code for one in during] == [503, 503, 503, 200]
    assert all(one.headers["retry-after"] for one in (page, rest, mcp))
    assert "unreachable" in page.text and page.headers["content-type"].startswith("text/html")
    assert rest.json()["error"]["code"] == mcp.json()["error"]["data"]["code"] == "unavailable"
