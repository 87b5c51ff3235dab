"""Test kill -9 of PostgreSQL during batches: nothing acknowledged is lost, nothing is half written,
and all recovers by itself.
"""

import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from django.db import connection

from backlog_site.devserver.embedded import running_valkey
from tests.faults.surroundings import (
    append,
    append_batch,
    eventually,
    kill_postgres,
    lines,
    query,
    readiness,
    says_come_back,
    served,
    token_of,
)
from tests.mcp.clients import modern
from tests.mcp.site import Site
from tests.servers.postgres import running_postgres

pytestmark = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no server that could be killed"
)

WRITERS, BATCH = 3, 5
KILLS = 3


class Writer(threading.Thread):
    """Send batches under keys, and retry each until it is acknowledged."""

    def __init__(self, name: str, site: Site, token: str, uris: list[str]) -> None:
        super().__init__(name=name)
        self.site, self.token, self.uris = site, token, uris
        self.acknowledged: list[str] = []
        self.refused: list[httpx.Response] = []
        self.may_stop = threading.Event()

    def run(self) -> None:
        with self.site.client(self.token) as http:
            while not self.may_stop.is_set():
                self._send(http, f"{self.name}.{len(self.acknowledged)}")

    def _send(self, http: httpx.Client, line: str) -> None:
        while (
            answer := append_batch(http, self.site, self.uris * BATCH, line, line)
        ).status_code != 200:
            self.refused.append(answer)
            time.sleep(0.2)
        self.acknowledged.append(line)


def test_a_killed_database_comes_back_with_all_that_was_acknowledged(
    redis_url: str, redis_home: Path, postgres_url: str, postgres_home: Path
) -> None:
    with ExitStack() as stack:
        stack.enter_context(running_valkey(redis_url, redis_home))
        server = stack.enter_context(running_postgres(postgres_url, postgres_home))
        site, http, first = stack.enter_context(
            served(redis_url, DATABASE_URL=postgres_url, BACKLOG_LOCK_SECONDS="30")
        )
        second = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Beside'}, by='alice')}/description"
        writers = [
            Writer(str(number), site, token_of(http), [first, second]) for number in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            wait_for_more(writers)
            kill_postgres(server, postgres_url)
            check_it_says_so(http, site, first)
            server = stack.enter_context(running_postgres(postgres_url, postgres_home))
        wait_for_more(writers)
        for writer in writers:
            writer.may_stop.set()
        for writer in writers:
            writer.join()
        assert readiness(http, site) == "ok"
        assert all(says_come_back(answer) for writer in writers for answer in writer.refused)
        acknowledged = [line for writer in writers for line in writer.acknowledged]
        for uri in (first, second):
            assert Counter(lines(http, site, uri)) == dict.fromkeys(acknowledged, BATCH)
        check_history(site)


def wait_for_more(writers: list[Writer]) -> None:
    before = {writer.name: len(writer.acknowledged) for writer in writers}
    assert eventually(
        lambda: all(len(writer.acknowledged) > before[writer.name] + 1 for writer in writers)
    )


def check_it_says_so(http: httpx.Client, site: Site, uri: str) -> None:
    ready = http.get(f"{site.url}/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert says_come_back(append(http, site, uri, "too early"))
    page = http.get(f"{site.url}/board/", headers={"Cookie": f"sessionid={'a' * 32}"})
    assert (page.status_code, page.headers["Retry-After"]) == (
        503,
        "2",
    ) and "unreachable" in page.text
    arguments = {"uri": uri, "operation": {"type": "append", "content": "too early"}}
    told = modern(site, http, "tools/call", {"name": "write_resource", "arguments": arguments})
    assert "unavailable" in told.text


def check_history(site: Site) -> None:
    """Check that every version of both tasks is there, each once."""
    found = query(
        site,
        "SELECT object_id, count(*), max(version) FROM resources_app_revision GROUP BY object_id",
    )
    assert len(found) == 2 and all(count == newest for _, count, newest in found)
