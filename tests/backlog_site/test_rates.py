"""Test that limits hold across processes, are sent in headers, and stay when Redis goes down."""

import asyncio
import os
import uuid
from typing import Any

import httpx
import pytest

from backlog_site.devserver.embedded import free_port
from backlog_site.serving import gate
from backlog_site.serving.rate_limit import MAX_REMEMBERED, Counter, LocalCounter, Rate
from tests.mcp.site import Site, running_site

# These tests check the counting, not how soon a process stops waiting for Redis.
ENOUGH_ON_A_BUSY_MACHINE = 60.0


def count(times: int, rate: Rate, who: str, *, counters: int = 1) -> list[bool]:
    """Count concurrently through several counters, which stand for processes.

    Return True where the limit was exceeded.
    """

    async def scenario() -> list[bool]:
        doors = [Counter(patience=ENOUGH_ON_A_BUSY_MACHINE) for _ in range(counters)]
        asked = [doors[number % counters].count([(rate, who)]) for number in range(times)]
        return [usages[0].is_exceeded for usages in await asyncio.gather(*asked)]

    return asyncio.run(scenario())


def test_exactly_as_many_as_allowed_get_through_however_many_ask_at_once() -> None:
    exceeded = count(200, Rate("test", 50, 60), uuid.uuid4().hex, counters=4)
    assert exceeded.count(False) == 50


def test_callers_do_not_share_a_rate() -> None:
    rate = Rate("test", 3, 60)
    assert [count(3, rate, uuid.uuid4().hex) for _ in range(2)] == [[False] * 3] * 2


def test_without_redis_a_process_counts_for_itself(settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    assert count(30, Rate("test", 10, 60), "somebody").count(False) == 10


def test_without_redis_a_flood_of_invented_tokens_is_forgotten_and_its_address_is_not() -> None:
    counter, address, token = LocalCounter(), Rate("address", 50, 60), Rate("token", 50, 60)
    flood = [
        counter.count([(address, "one"), (token, f"invented {n}")])
        for n in range(3 * MAX_REMEMBERED)
    ]
    assert flood[-1][0].used == 3 * MAX_REMEMBERED and flood[-1][0].is_exceeded
    assert sum(map(len, counter._windows.values())) <= MAX_REMEMBERED + 1


def test_the_count_starts_again_after_its_time() -> None:
    rate, who = Rate("test", 1, 1), uuid.uuid4().hex

    async def scenario() -> list[bool]:
        counter, seen = Counter(patience=ENOUGH_ON_A_BUSY_MACHINE), []
        for _ in range(100):
            standing = (await counter.count([(rate, who)]))[0]
            seen.append(standing.is_exceeded)
            if len(seen) > 2 and not seen[-1]:
                return seen
            await asyncio.sleep(0.1)
        return seen

    seen = asyncio.run(scenario())
    assert seen[:2] == [False, True] and seen[-1] is False


@pytest.mark.parametrize(
    ("proxies", "header", "address"),
    [
        (0, "9.9.9.9", "10.0.0.1"),
        (1, "9.9.9.9", "9.9.9.9"),
        (1, "1.1.1.1, 9.9.9.9", "9.9.9.9"),
        (2, "6.6.6.6, 1.1.1.1, 9.9.9.9", "1.1.1.1"),
        (2, "9.9.9.9", "10.0.0.1"),
        (1, "nonsense", "10.0.0.1"),
        (1, None, "10.0.0.1"),
        (1, "2001:DB8::1", "2001:db8::1"),
    ],
)
def test_only_our_own_proxies_may_say_who_asks(
    settings: Any, proxies: int, header: str | None, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    headers = [(b"x-forwarded-for", header.encode())] if header else []
    assert gate.real_address({"client": ("10.0.0.1", 5), "headers": headers}) == address


@pytest.fixture(scope="module")
def strict() -> Any:
    limits = {
        "BACKLOG_RATE_TOKEN": "20",
        "BACKLOG_RATE_ADDRESS": "1000",
        "BACKLOG_RATE_REGISTRATIONS": "2",
    }
    redis = os.environ["REDIS_URL"]
    with running_site(redis, **limits, BACKLOG_TRUSTED_PROXIES="1") as site:
        yield site


def ask(
    site: Site, http: httpx.Client, times: int, path: str = "/api/v1/tasks/"
) -> list[httpx.Response]:
    return [http.get(f"{site.url}{path}") for _ in range(times)]


def test_a_token_is_limited_over_rest_and_mcp_and_all_processes(strict: Site) -> None:
    token = strict.elsewhere.token(name="alice", roles=["contributor"], label=uuid.uuid4().hex)
    other = strict.elsewhere.token(name="alice", roles=["contributor"], label=uuid.uuid4().hex)
    with strict.client(token) as http, strict.client(other) as calm:
        answers = ask(strict, http, 25)
        assert [answer.status_code for answer in answers] == [200] * 20 + [429] * 5
        assert [answer.headers["ratelimit-remaining"] for answer in answers[:3]] == [
            "19",
            "18",
            "17",
        ]
        refused = answers[-1]
        assert (
            refused.json()["error"]["code"] == "rate_limited"
            and refused.json()["error"]["retryable"] is True
        )
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert (refused.headers["ratelimit-limit"], refused.headers["ratelimit-remaining"]) == (
            "20",
            "0",
        )
        assert http.post(strict.mcp, json={}).status_code == 429
        assert ask(strict, calm, 1)[0].status_code == 200


def test_a_token_is_one_caller_however_its_header_is_written(strict: Site) -> None:
    token = strict.elsewhere.token(name="alice", roles=["contributor"], label=uuid.uuid4().hex)
    written = [f"Bearer {token}", f"bearer  {token}", f"BEARER   {token}", f"bEARER {token}"]
    with strict.client(None) as http:
        answers = [
            http.get(f"{strict.url}/api/v1/tasks/", headers={"Authorization": header})
            for header in written
        ]
    assert [answer.status_code for answer in answers] == [200] * 4
    assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["19", "18", "17", "16"]


def test_an_address_may_register_only_so_many_clients(strict: Site) -> None:
    form = {
        "client_name": "A",
        "redirect_uris": ["http://127.0.0.1/cb"],
        "token_endpoint_auth_method": "none",
    }
    url = f"{strict.url}/o/register/"
    with strict.client(None, **{"X-Forwarded-For": "203.0.113.1"}) as http:
        assert [http.post(url, json=form).status_code for _ in range(4)] == [201, 201, 429, 429]
    with strict.client(None, **{"X-Forwarded-For": "203.0.113.2"}) as http:
        assert http.post(url, json=form).status_code == 201


def test_probes_are_never_refused(strict: Site) -> None:
    token = strict.elsewhere.token(name="alice", roles=["contributor"], label=uuid.uuid4().hex)
    with strict.client(token) as http:
        assert {answer.status_code for answer in ask(strict, http, 30, "/healthz")} == {200}
