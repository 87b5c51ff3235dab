"""Test `/api/v1/events/`: which client receives what, from which position, and when the stream
ends.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import psycopg

from tests.mcp.clients import Events, title
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site


@contextmanager
def listening(site: Site, token: str, **headers: str) -> Iterator[Events]:
    with (
        site.client(token) as http,
        http.stream("GET", f"{site.url}/api/v1/events/", headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"] == "text/event-stream"
        yield Events(response)


def test_a_write_in_another_process_is_told_without_its_content(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Watched"})
    with listening(site, tokens.bob) as events:
        site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("A secret title"))
        notice = events.next()
    assert (notice["id"], notice["kind"], notice["version"], notice["fields"]) == (
        ref,
        "task",
        2,
        ["title"],
    )
    assert (notice["author"], notice["agent"]) == ("carol", "elsewhere")
    assert "secret" not in str(notice)


@contextmanager
def writing_in_another_database() -> Iterator[None]:
    """A transaction that has written and stays open.

    SQLite has no server to share with another database.
    """
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        yield
        return
    with psycopg.connect(server) as other:
        other.execute("SELECT pg_current_xact_id()")
        yield
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


def test_an_open_transaction_in_another_database_holds_no_event_back(
    site: Site, tokens: Tokens
) -> None:
    ref = site.elsewhere.create(values={"title": "Watched"})
    with listening(site, tokens.bob) as events, writing_in_another_database():
        site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("Told at once"))
        assert events.next()["id"] == ref


def test_a_listener_that_comes_back_misses_nothing(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Missed"})
    with listening(site, tokens.bob) as events:
        site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("two"))
        events.next()
    assert events.last_id
    site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("three"))
    site.elsewhere.write(uri=f"mcp://backlog/tasks/{ref}", operation=title("four"))
    with listening(site, tokens.bob, **{"Last-Event-ID": events.last_id}) as events:
        assert [events.next()["version"], events.next()["version"]] == [3, 4]


def test_what_somebody_may_not_see_they_are_not_told_of(site: Site, tokens: Tokens) -> None:
    with listening(site, tokens.bob) as events:
        hidden = site.elsewhere.create(values={"title": "Hidden", "groups": ["admin"]})
        shown = site.elsewhere.create(values={"title": "Shown"})
        notice = events.next()
    assert notice["id"] == shown != hidden


def test_a_revoked_token_ends_its_stream(site: Site, tokens: Tokens) -> None:
    token = site.elsewhere.token(name="erin", roles=["viewer"], scope="read")
    with listening(site, token) as events:
        site.elsewhere.revoke(name="erin")
        try:
            events.next()
        except EOFError:
            return
    raise AssertionError("the stream went on")


def test_nobody_is_told_nothing(site: Site, tokens: Tokens) -> None:
    answer = httpx.get(f"{site.url}/api/v1/events/", trust_env=False)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "unauthenticated"
    with site.client(tokens.bob) as http:
        wrong = http.get(f"{site.url}/api/v1/events/", headers={"Last-Event-ID": "yesterday"})
        assert wrong.json()["error"]["code"] == "validation_failed"
        assert http.post(f"{site.url}/api/v1/events/").status_code == 400
