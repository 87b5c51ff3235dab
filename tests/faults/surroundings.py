"""Run a complete site to break: requests to it, its responses, and processes that can be killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import httpx
import psycopg
import redis

from backlog_site.devserver.embedded import end_group
from tests.mcp.site import ROOT, Site, running_site
from tests.servers.forks import fork

# A timeout for a test that hangs; nothing is measured with it.
PATIENCE_SECONDS = 180


@contextmanager
def served(redis_url: str, **variables: str) -> Iterator[tuple[Site, httpx.Client, str]]:
    """Yield a site, a client that writes, and the address of a description."""
    variables = {
        "BACKLOG_LOCK_SECONDS": "1",
        "DJANGO_SETTINGS_MODULE": "tests.faults.fixture.settings",
    } | variables
    with running_site(redis_url, **variables) as site:
        token = site.elsewhere.token(name="alice", roles=["contributor"])
        uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Written to'}, by='alice')}/description"
        with site.client(token) as http:
            yield site, http, uri


def token_of(http: httpx.Client) -> str:
    return http.headers["Authorization"].removeprefix("Bearer ")


def append(http: httpx.Client, site: Site, uri: str, line: str) -> httpx.Response:
    operation = {"type": "append", "content": f"{line}\n"}
    return http.post(f"{site.url}/api/v1/write/", json={"uri": uri, "operation": operation})


def append_batch(
    http: httpx.Client, site: Site, uris: list[str], line: str, key: str
) -> httpx.Response:
    operation = {"type": "append", "content": f"{line}\n"}
    body = {
        "operations": [{"uri": uri, "operation": operation} for uri in uris],
        "idempotency_key": key,
    }
    return http.post(f"{site.url}/api/v1/write_batch/", json=body | {"atomic": True})


def lines(http: httpx.Client, site: Site, uri: str) -> list[str]:
    answer = http.get(f"{site.url}/api/v1/resource/", params={"uri": uri})
    assert answer.status_code == 200, answer.text
    return answer.json()["contents"].splitlines()


def eventually(condition: Callable[[], Any]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def readiness(http: httpx.Client, site: Site) -> str:
    return http.get(f"{site.url}/readyz").json()["status"]


def says_come_back(answer: httpx.Response) -> bool:
    """Return whether the response is a 503 with Retry-After in the common error shape."""
    error = answer.json()["error"] if answer.status_code == 503 else {}
    return bool(
        error
        and error["code"] == "unavailable"
        and error["retryable"]
        and answer.headers["Retry-After"]
    )


def query(site: Site, statement: str) -> list[tuple[Any, ...]]:
    """Query the database directly, because the site may be what is broken."""
    url = site.environment["DATABASE_URL"]
    if url.startswith("postgres"):
        with psycopg.connect(url) as connection:
            return connection.execute(statement).fetchall()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=PATIENCE_SECONDS)) as file:
        return file.execute(statement).fetchall()


@contextmanager
def celery(site: Site, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker or a beat, and kill it at the end without a graceful shutdown."""
    with site.log.open("ab") as output:
        command = [sys.executable, "-m", "celery", "--quiet", "--app", "backlog_site", *arguments]
        process = fork(command, output=output, environment=site.environment, folder=ROOT)
    try:
        yield process
    finally:
        end_group(process)


def worker(site: Site) -> Any:
    return celery(site, "worker", "--concurrency", "2", "--without-mingle", "--without-gossip")


def beat(site: Site, name: str = "beat") -> Any:
    return celery(site, "beat", "--schedule", str(site.log.parent / name))


@contextmanager
def frozen(redis_url: str) -> Iterator[None]:
    """Freeze Redis: it accepts connections and never answers."""
    with redis.Redis.from_url(redis_url) as client:
        process = int(client.info("server")["process_id"])
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def kill_postgres(server: subprocess.Popen[bytes], url: str) -> None:
    """Kill all of its processes at once, as when the machine fails."""
    with psycopg.connect(url) as connection:
        pids = [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity")]
    server.kill()
    server.wait()
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
