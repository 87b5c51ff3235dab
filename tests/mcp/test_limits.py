"""Test the limits, and operation without Redis, on a separate site."""

import os
import time
from contextlib import ExitStack

import httpx
import pytest
from redis import Redis

from backlog_site.devserver.embedded import free_port, start_valkey, stop, valkey_answers
from backlog_site.mcp.sessions import IDLE_SECONDS
from tests.mcp.clients import (
    PATIENCE,
    get_stream,
    initialize,
    listening,
    modern,
    request,
    session,
    subscribe,
    title,
)
from tests.mcp.site import Site, running_site

OPENED = 200


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory):
    """Yield a Valkey that a test may stop."""
    url = f"redis://127.0.0.1:{free_port()}"
    process = start_valkey(url, tmp_path_factory.mktemp("valkey"))
    while not valkey_answers(url):
        assert process.poll() is None
    yield url, process
    stop(process)


@pytest.fixture(scope="module")
def small_site(redis):
    with running_site(redis[0], BACKLOG_MCP_STREAMS="3", BACKLOG_MCP_SESSIONS="4") as running:
        yield running


@pytest.fixture(scope="module")
def token(small_site):
    small_site.elsewhere.token(name="carol", roles=["admin"], scope="admin")
    return small_site.elsewhere.token(name="alice", roles=["contributor"])


def test_the_sessions_unused_for_longest_make_room_for_new_ones(small_site, token) -> None:
    with small_site.client(token) as http:
        opened = [initialize(small_site, http).headers["mcp-session-id"] for _ in range(4)]

        def ping(session_id: str) -> int:
            headers = {"Mcp-Session-Id": session_id}
            return http.post(small_site.mcp, json=request("ping"), headers=headers).status_code

        assert ping(opened[0]) == 200
        newest = initialize(small_site, http).headers["mcp-session-id"]
        assert [ping(session_id) for session_id in opened] == [200, 404, 200, 200]
        assert http.delete(small_site.mcp, headers={"Mcp-Session-Id": newest}).status_code == 200


def kept_in_redis(url: str) -> dict[str, int]:
    """Return every key of the site, and the seconds until it expires."""
    with Redis.from_url(url, decode_responses=True) as broker:
        return {key: broker.ttl(key) for key in broker.scan_iter("backlog:*")}


def kept_in_processes(site: Site, http: httpx.Client) -> dict[int, dict[str, int]]:
    """Return the conversation objects that each of the two processes holds, this one included."""
    found: dict[int, dict[str, int]] = {}
    deadline = time.monotonic() + 3 * PATIENCE
    while len(found) < 2 and time.monotonic() < deadline:
        with site.client(None, Authorization=http.headers["Authorization"]) as another:
            answer = modern(site, another, "tools/call", {"name": "fixture_kept", "arguments": {}})
            told = answer.json()["result"]["structuredContent"]
            found[told["process"]] = told["kept"]
    return found


def test_however_many_sessions_are_opened_few_are_kept(small_site, token, redis) -> None:
    """Open many sessions.

    A session its client never ends is evicted for a newer one, or a day after its last use.
    """
    with small_site.client(token) as http:
        for number in range(OPENED):
            http.headers.pop("Mcp-Session-Id", None)
            http.headers["Mcp-Session-Id"] = initialize(small_site, http).headers["mcp-session-id"]
            assert (
                subscribe(small_site, http, f"mcp://backlog/tasks?label=l{number}").status_code
                == 200
            )
        kept = kept_in_redis(redis[0])
        held = kept_in_processes(small_site, http)
    for name in ("session", "watches"):
        assert len([key for key in kept if key.startswith(f"backlog:mcp:{name}:")]) == 4, name
    of_sessions = {key: seconds for key, seconds in kept.items() if ":called:" not in key}
    assert {
        key: seconds for key, seconds in of_sessions.items() if not 0 < seconds <= IDLE_SECONDS
    } == {}
    assert len(kept) == len(of_sessions) + 1, (
        "one key per credential, however many sessions it opened"
    )
    assert len(held) == 2
    assert (
        max(most for of_process in held.values() for most in of_process.values()) < OPENED / 10
    ), held


def test_streams_of_a_user_are_bounded_in_each_process(small_site, token) -> None:
    refused = 0
    with small_site.client(token) as http, ExitStack() as streams:
        for _ in range(20):
            try:
                streams.enter_context(listening(small_site, http, "mcp://backlog/tasks"))
            except EOFError:
                refused += 1
        assert 14 <= refused <= 17
    with small_site.client(token) as http, listening(small_site, http, "mcp://backlog/tasks"):
        assert modern(small_site, http, "tools/list").status_code == 200


def test_without_redis_the_newer_era_goes_on_and_sessions_say_so(small_site, token, redis) -> None:
    _, process = redis
    uri = f"mcp://backlog/tasks/{small_site.elsewhere.create(values={'title': 'Redis goes away'})}"
    with (
        session(small_site, token) as http,
        session(small_site, token) as other,
        small_site.client(token) as stateless,
        small_site.client(token) as listener,
        listening(small_site, listener, uri) as events,
    ):
        subscribe(small_site, http, uri)
        with get_stream(small_site, http) as legacy_events:
            stop(process)
            answer = other.post(small_site.mcp, json=request("ping"))
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
            assert answer.json()["error"]["data"]["code"] == "unavailable"
            assert initialize(small_site, stateless).status_code == 503
            assert modern(small_site, stateless, "tools/list").status_code == 200
            small_site.elsewhere.write(uri=uri, operation=title("written without Redis"))
            assert events.next_update()["_meta"]["change"]["version"] == 2
            assert legacy_events.next_update()["_meta"]["change"]["version"] == 2


def test_the_configured_bound_of_a_body_holds_for_rest_and_mcp() -> None:
    with running_site(os.environ["REDIS_URL"], BACKLOG_MAX_BODY_BYTES="2048") as site:
        token = site.elsewhere.token(name="alice", roles=["contributor"])
        long = request("ping", {"_meta": {"note": "x" * 3000}})
        with site.client(token) as http:
            assert http.post(site.mcp, json=long).status_code == 413
            assert modern(site, http, "tools/list", {"note": "x" * 3000}).status_code == 413
            assert (
                http.post(f"{site.url}/api/v1/tasks/", json={"title": "x" * 3000}).status_code
                == 413
            )
            assert initialize(site, http).status_code == 200
