"""Test the wire of the handshake era: versions, sessions, batches, the GET stream."""

import json
import threading

import httpx
import pytest

from backlog_site.accounts.clients import checks
from tests.mcp.clients import (
    LEGACY_VERSIONS,
    call,
    get_stream,
    initialize,
    request,
    session,
    subscribe,
    title,
    wait_until_refused,
)
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site


@pytest.mark.parametrize("version", LEGACY_VERSIONS)
def test_each_revision_is_agreed_on_as_asked(site: Site, tokens: Tokens, version: str) -> None:
    with site.client(tokens.alice) as http:
        assert initialize(site, http, version).json()["result"]["protocolVersion"] == version


def test_an_unknown_revision_is_answered_with_the_newest_of_the_era(
    site: Site, tokens: Tokens
) -> None:
    with site.client(tokens.alice) as http:
        assert (
            initialize(site, http, "1999-01-01").json()["result"]["protocolVersion"] == "2025-11-25"
        )


def test_the_sample_of_the_connect_page_is_answered(site: Site, tokens: Tokens) -> None:
    (curl,) = [one.text for one in checks(site.mcp) if one.key == "curl"]
    _, _, body = curl.partition("-d ")
    with site.client(tokens.bob) as http:
        assert "protocolVersion" in http.post(site.mcp, content=body.strip("'")).text


def test_a_session_of_another_user_does_not_exist(site: Site, tokens: Tokens) -> None:
    with session(site, tokens.alice) as http, site.client(tokens.bob) as other:
        headers = {"Mcp-Session-Id": http.headers["Mcp-Session-Id"]}
        assert other.post(site.mcp, json=request("ping"), headers=headers).status_code == 404
        assert other.get(site.mcp, headers=headers).status_code == 404
        assert other.delete(site.mcp, headers=headers).status_code == 404
        assert http.post(site.mcp, json=request("ping")).json()["result"] == {}


def test_a_request_without_a_session_is_refused(site: Site, tokens: Tokens) -> None:
    with site.client(tokens.alice) as http:
        answer = http.post(site.mcp, json=request("tools/list"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


def test_a_deleted_session_is_gone_in_every_process_and_its_stream_ends(
    site: Site, tokens: Tokens
) -> None:
    with session(site, tokens.alice) as http, get_stream(site, http) as events:
        assert http.delete(site.mcp).status_code == 200
        with pytest.raises(EOFError):
            events.next()
        assert {http.post(site.mcp, json=request("ping")).status_code for _ in range(10)} == {404}


def test_a_batch_is_answered_in_the_revision_that_has_them(site: Site, tokens: Tokens) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    batch = [request("ping", request_id="a"), note, request("no/such", request_id=2), "nonsense"]
    with session(site, tokens.alice, "2025-03-26") as http:
        answers = http.post(site.mcp, json=batch).json()
        assert [answer["id"] for answer in answers] == ["a", 2, None]
        assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, -32600]
        assert http.post(site.mcp, json=[note]).status_code == 202
        assert http.post(site.mcp, json=[]).status_code == 400
        assert http.post(site.mcp, json=[request("ping")] * 51).status_code == 400
    with session(site, tokens.alice, "2025-06-18") as http:
        assert http.post(site.mcp, json=batch).status_code == 400


def test_an_error_of_the_domain_has_the_code_of_the_era_and_a_crash_tells_nothing(
    site: Site, tokens: Tokens
) -> None:
    with session(site, tokens.alice) as http:
        error = http.post(site.mcp, json=request("fixture/fail")).json()["error"]
        assert error["code"] == -32002
        assert error["data"]["code"] == "not_found"
        assert error["data"]["uri"] == "mcp://backlog/tasks/TASK-9999"
        crash = http.post(site.mcp, json=request("fixture/crash"))
        assert (crash.status_code, crash.json()["error"]["code"]) == (200, -32603)
        assert "secret" not in crash.text
        failed = http.post(
            site.mcp, json=request("tools/call", {"name": "fixture_crash", "arguments": {}})
        )
        assert failed.json()["result"]["isError"] is True
        assert "secret" not in failed.text


def test_what_may_not_be_read_may_not_be_watched(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "For admins", "groups": ["admin"]})
    with session(site, tokens.alice) as http:
        hidden = subscribe(site, http, f"mcp://backlog/tasks/{ref}").json()["error"]
        absent = subscribe(site, http, "mcp://backlog/tasks/TASK-999999").json()["error"]
        assert hidden["code"] == absent["code"] == -32002
        assert subscribe(site, http, "mcp://backlog/nonsense").json()["error"]["code"] == -32602
        assert subscribe(site, http, "metadata://templates").json()["error"]["code"] == -32602


def test_a_stream_that_comes_back_goes_on_where_it_was(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Resumed'})}"
    with session(site, tokens.alice) as http:
        subscribe(site, http, uri)
        site.elsewhere.write(uri=uri, operation=title("before the first stream"))
        with get_stream(site, http) as events:
            assert events.next_update()["_meta"]["change"]["version"] == 2
            seen = events.last_id
        for version in (3, 4, 5):
            site.elsewhere.write(uri=uri, operation=title(f"unseen {version}"))
        with get_stream(site, http, **{"Last-Event-ID": seen}) as events:
            assert [events.next_update()["_meta"]["change"]["version"] for _ in range(3)] == [
                3,
                4,
                5,
            ]
        with get_stream(site, http, **{"Last-Event-ID": seen}) as events:
            assert events.next_update()["_meta"]["change"]["version"] == 3
        assert http.get(site.mcp, headers={"Last-Event-ID": "nonsense"}).status_code == 400


def test_of_two_streams_of_a_session_the_newer_one_is_told(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'One stream'})}"
    with session(site, tokens.alice) as http, session(site, tokens.alice) as same:
        same.headers["Mcp-Session-Id"] = http.headers["Mcp-Session-Id"]
        subscribe(site, http, uri)
        with get_stream(site, http) as older, get_stream(site, same) as newer:
            with pytest.raises(EOFError):
                older.next()
            site.elsewhere.write(uri=uri, operation=title("told once"))
            assert newer.next_update()["uri"] == uri


def test_a_rolled_back_write_is_never_told(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Rolled back'})}"
    with session(site, tokens.alice) as http, get_stream(site, http) as events:
        subscribe(site, http, uri)
        site.elsewhere.write_and_roll_back(uri=uri, operation=title("never"))
        site.elsewhere.write(uri=uri, operation=title("committed"))
        change = events.next_update()["_meta"]["change"]
        assert (change["version"], change["operation"]["value"]) == (2, "committed")


def test_a_request_is_cancelled_from_another_process(site: Site, tokens: Tokens) -> None:
    with session(site, tokens.alice) as http, session(site, tokens.alice) as same:
        same.headers["Mcp-Session-Id"] = http.headers["Mcp-Session-Id"]
        answers: list[httpx.Response] = []
        waiting = request(
            "tools/call", {"name": "fixture_wait", "arguments": {"seconds": 600}}, "slow"
        )
        asking = threading.Thread(target=lambda: answers.append(http.post(site.mcp, json=waiting)))
        asking.start()
        cancelled = {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": "slow"},
        }
        while asking.is_alive():
            assert same.post(site.mcp, json=cancelled).status_code == 202
            asking.join(0.2)
        assert answers[0].json()["error"]["code"] == -32800


def test_a_revoked_token_ends_its_streams_and_its_requests(site: Site) -> None:
    token = site.elsewhere.token(name="dave", roles=["viewer"], scope="read")
    with session(site, token) as http, get_stream(site, http) as events:
        assert call(site, http, "fixture_whoami")["user"] == "dave"
        site.elsewhere.revoke(name="dave")
        with pytest.raises(EOFError):
            while True:
                events.next()
        wait_until_refused(site, http)


def test_sessions_of_a_user_are_bounded(site: Site, tokens: Tokens) -> None:
    import redis

    with session(site, tokens.alice) as http:
        assert http.post(site.mcp, json=request("ping")).status_code == 200
    with redis.Redis.from_url(site.environment["REDIS_URL"], decode_responses=True) as broker:
        key = f"backlog:mcp:session:{http.headers['Mcp-Session-Id']}"
        assert 0 < broker.ttl(key) <= 24 * 3600
        assert json.loads(broker.hget(key, "client"))["name"] == "plain"
