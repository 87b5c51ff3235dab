"""Test web processes killed, Redis down, the database locked: nothing acknowledged is lost, and all
recovers.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from backlog_site.devserver.embedded import end_group, running_valkey
from tests.faults.surroundings import (
    append,
    eventually,
    frozen,
    lines,
    readiness,
    says_come_back,
    served,
    token_of,
)
from tests.mcp.site import Site, web_processes

BATCH = 400


def test_web_processes_killed_under_writes_lose_nothing_they_acknowledged(
    redis_url: str, redis_home: Path
) -> None:
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, uri):
        acknowledged: list[str] = []

        def write_on(writer: int) -> None:
            with site.client(token_of(http)) as own:
                for number in range(10_000):
                    try:
                        answer = append(own, site, uri, f"{writer}.{number}")
                    except httpx.TransportError:
                        return
                    if answer.status_code == 200:
                        acknowledged.append(f"{writer}.{number}")

        writers = [threading.Thread(target=write_on, args=[writer]) for writer in range(3)]
        for writer in writers:
            writer.start()
        assert eventually(lambda: len(acknowledged) >= 30)
        end_group(site.web)
        for writer in writers:
            writer.join()
        with web_processes(site.environment, urlsplit(site.url).port or 0, site.log):
            kept = lines(http, site, uri)
            assert len(kept) == len(set(kept))
            assert set(acknowledged) <= set(kept)
            # Each writer may have been killed between its last commit and the response.
            assert len(kept) <= len(acknowledged) + len(writers)


def test_a_batch_whose_web_process_is_killed_is_there_whole_or_not_at_all(
    redis_url: str, redis_home: Path
) -> None:
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, uri):
        operation = {"uri": uri, "operation": {"type": "append", "content": "part\n"}}
        body = {"operations": [operation] * BATCH, "atomic": True, "idempotency_key": "the batch"}

        def send_batch() -> None:
            with pytest.raises(httpx.TransportError):
                http.post(f"{site.url}/api/v1/write_batch/", json=body)

        sending = threading.Thread(target=send_batch)
        sending.start()
        time.sleep(0.5)
        end_group(site.web)
        sending.join()
        with web_processes(site.environment, urlsplit(site.url).port or 0, site.log):
            assert len(lines(http, site, uri)) in (0, BATCH)
            assert http.post(f"{site.url}/api/v1/write_batch/", json=body).status_code == 200
            assert len(lines(http, site, uri)) == BATCH


def test_redis_may_go_and_come_while_reads_and_writes_go_on(
    redis_url: str, redis_home: Path
) -> None:
    with served(redis_url) as (site, http, uri):
        assert eventually(lambda: readiness(http, site) == "degraded")
        assert append(http, site, uri, "before").status_code == 200
        with running_valkey(redis_url, redis_home):
            assert eventually(lambda: readiness(http, site) == "ok")
            assert append(http, site, uri, "with").status_code == 200
        assert eventually(lambda: readiness(http, site) == "degraded")
        assert append(http, site, uri, "after").status_code == 200
        assert lines(http, site, uri) == ["before", "with", "after"]


def test_a_frozen_redis_holds_up_nobody(redis_url: str, redis_home: Path) -> None:
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, uri):
        assert append(http, site, uri, "before").status_code == 200
        with frozen(redis_url):
            assert append(http, site, uri, "meanwhile").status_code == 200
            assert eventually(lambda: readiness(http, site) == "degraded")
            assert lines(http, site, uri) == ["before", "meanwhile"]
        assert eventually(lambda: readiness(http, site) == "ok")
        assert append(http, site, uri, "after").status_code == 200
        assert lines(http, site, uri) == ["before", "meanwhile", "after"]


def test_a_database_that_is_held_answers_that_one_should_come_back(redis_url: str) -> None:
    with served(redis_url) as (site, http, uri):
        with held(site):
            refused = append(http, site, uri, "too early")
            assert says_come_back(refused), refused.text
            assert lines(http, site, uri) == []
        assert append(http, site, uri, "in time").status_code == 200


@contextmanager
def held(site: Site) -> Iterator[None]:
    """Hold a lock in another transaction that does not end."""
    url = site.environment["DATABASE_URL"]
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            connection.execute("SELECT * FROM resources_app_task FOR UPDATE")
            yield
            connection.rollback()
        return
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("ROLLBACK")
    connection.close()
