"""Test SIGTERM: the process ends in time and quietly, its streams resume elsewhere, and no request
behind the proxy fails.
"""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from backlog_site.devserver.embedded import end_group, free_port, running_valkey, spawn
from tests.faults import nginx
from tests.faults.surroundings import PATIENCE_SECONDS, append, eventually, served, token_of
from tests.mcp.site import ROOT, Site

# The time an orchestrator gives a process between SIGTERM and SIGKILL.
END_SECONDS = 10
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "listener", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {"notifications": {"resourcesListChanged": True}, "_meta": META},
}


class Web:
    """Run a web process with the documented command."""

    def __init__(self, site: Site, port: int, log: Path, **variables: str) -> None:
        self.url = f"http://127.0.0.1:{port}"
        command = [
            *(
                sys.executable,
                "-m",
                "uvicorn",
                "backlog_site.asgi:application",
                "--port",
                str(port),
            ),
            *("--no-proxy-headers", "--lifespan", "on"),
        ]
        given = {
            name: value
            for name, value in site.environment.items()
            if name != "BACKLOG_DRAIN_SECONDS"
        }
        environment = {
            **given,
            "BACKLOG_PUBLIC_URL": self.url,
            "BACKLOG_LOG_LEVEL": "WARNING",
            **variables,
        }
        with log.open("ab") as output:
            self.process: subprocess.Popen[bytes] = spawn(
                command, output=output, environment=environment, folder=ROOT
            )
        assert eventually(self.is_ready), log.read_text(errors="replace")

    def is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5, trust_env=False).status_code == 200
        except httpx.TransportError:
            return False

    def ends(self) -> bool:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        return True


@contextmanager
def in_background(*jobs: Callable[[], Any]) -> Iterator[None]:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(PATIENCE_SECONDS)


def test_a_process_with_open_streams_ends_in_time_and_without_a_traceback(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "web.log"
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, _):
        web = Web(site, free_port(), log)
        try:
            with (
                site.client(token_of(http)) as one,
                site.client(token_of(http)) as two,
                one.stream("GET", f"{web.url}/api/v1/events/") as events,
                two.stream("POST", f"{web.url}/mcp", json=LISTEN, headers=MODERN) as listening,
            ):
                assert (events.status_code, listening.status_code) == (200, 200)
                next(events.iter_raw(1))
                assert web.ends(), "The process did not end."
                # Both ended as complete responses: their clients reconnect at once and resume.
                assert listening.read() is not None
        finally:
            end_group(web.process)
    said = log.read_text()
    assert "Traceback" not in said and "requests_cancelled" not in said, said


def test_a_draining_process_answers_says_so_and_closes_its_connections(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, _):
        web = Web(site, free_port(), tmp_path / "web.log", BACKLOG_DRAIN_SECONDS="60")
        try:
            assert "connection" not in httpx.get(f"{web.url}/healthz", trust_env=False).headers
            web.process.send_signal(signal.SIGTERM)
            assert eventually(
                lambda: httpx.get(f"{web.url}/readyz", trust_env=False).status_code == 503
            )
            refusal = httpx.get(f"{web.url}/readyz", trust_env=False)
            assert refusal.json()["status"] == "draining" and refusal.headers["Retry-After"]
            answer = http.get(f"{web.url}/api/v1/tasks/")
            assert (answer.status_code, answer.headers["connection"]) == (200, "close")
            # A second signal skips the drain.
            assert web.ends()
        finally:
            end_group(web.process)


def test_a_request_that_hangs_does_not_keep_the_process(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "web.log"
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, _):
        web = Web(site, free_port(), log, BACKLOG_DRAIN_SECONDS="0")
        try:
            half = b"POST /api/v1/write/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n"
            half += (
                f"Authorization: Bearer {token_of(http)}\r\nContent-Type:"
                " application/json\r\n\r\n{".encode()
            )
            with socket.create_connection(
                ("127.0.0.1", httpx.URL(web.url).port or 0)
            ) as connection:
                connection.sendall(half)
                assert http.get(f"{web.url}/api/v1/tasks/").status_code == 200
                assert web.ends(), "The process did not end."
        finally:
            end_group(web.process)
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.mark.skipif(nginx.find() is None, reason="make test installs nginx where apt can")
def test_a_rolling_restart_behind_the_documented_nginx_fails_no_request(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    log, folder = tmp_path / "web.log", tmp_path / "nginx"
    folder.mkdir()
    ports = [free_port(), free_port()]
    seen: Counter[int | str] = Counter()
    finished = threading.Event()
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, http, uri):
        webs = [Web(site, port, log, BACKLOG_TRUSTED_PROXIES="1") for port in ports]
        with nginx.running_nginx(folder, free_port(), ports) as url:
            behind = Site(url, site.environment, site.elsewhere, site.log, site.web)

            def read_on() -> None:
                with site.client(token_of(http)) as own:
                    while not finished.is_set():
                        seen[own.get(f"{url}/api/v1/tasks/").status_code] += 1

            def write_on() -> None:
                with site.client(token_of(http)) as own:
                    while not finished.is_set():
                        seen[
                            append(own, behind, uri, f"line {time.monotonic_ns()}").status_code
                        ] += 1

            assert eventually(
                lambda: httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
            )
            with in_background(read_on, read_on, write_on, write_on):
                try:
                    for turn, port in enumerate([*ports, *ports]):
                        before = seen[200]
                        assert webs[turn % 2].ends(), "The process did not end."
                        webs[turn % 2] = Web(site, port, log, BACKLOG_TRUSTED_PROXIES="1")
                        assert eventually(lambda before=before: seen[200] > before)
                finally:
                    finished.set()
        for web in webs:
            end_group(web.process)
    assert set(seen) == {200}, (seen, (folder / "error.log").read_text()[-3000:])
    assert "Traceback" not in log.read_text()
