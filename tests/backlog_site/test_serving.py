"""The site as a server calls it: pages and REST in threads that stay, files beside them, all behind one door."""

import asyncio
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User

from backlog_site.asgi import application
from resources_app import tokens


async def answers_to(*paths: str, secret: str) -> list[httpx.Response]:
    transport: Any = httpx.ASGITransport(application)
    headers = {"Authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        return list(await asyncio.gather(*(client.get(path) for path in paths)))


# One test, because what the site keeps open to Redis belongs to the event loop that first asked.
@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_pages_files_and_many_requests_at_once_are_answered_alike(alice: User) -> None:
    secret = tokens.create(alice, "many", "read")[1]
    paths = ["/login/", "/static/viewer/app.css", "/static/none.css", "/none/", *["/api/v1/tasks/"] * 60]
    page, file, no_file, no_page, *many = asyncio.run(answers_to(*paths, secret=secret))
    assert page.status_code == file.status_code == 200
    assert page.headers["content-security-policy"] == file.headers["content-security-policy"]
    assert file.headers["content-type"].startswith("text/css") and file.headers["content-encoding"] == "gzip"
    assert no_file.status_code == no_page.status_code == 404
    assert {answer.status_code for answer in many} == {200}
