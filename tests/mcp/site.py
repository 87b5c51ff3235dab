"""Run the site in separate processes, as in production: two web processes, a database, and one
process elsewhere.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from backlog_site.devserver.embedded import free_port, stop
from tests import databases
from tests.servers.forks import ForkedPython, fork

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 60


class Elsewhere:
    """Run `elsewhere.create(values={...})` in another process; elsewhere.py defines the
    commands.
    """

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = ForkedPython(
            [
                sys.executable,
                "-c",
                "import django; django.setup(); from tests.mcp.elsewhere import obey; obey()",
            ],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._is_ready = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # such as attributes that pretty printers look up
            raise AttributeError(name)

        def call(**arguments: Any) -> Any:
            if not self._is_ready:
                assert self._answer() == "ready"
                self._is_ready = True
            self._process.stdin.write(json.dumps([name, arguments]) + "\n")
            self._process.stdin.flush()
            return self._answer()

        return call

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        assert line, "the process elsewhere has ended"
        return json.loads(line)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(START_SECONDS)


@dataclass
class Site:
    url: str
    environment: dict[str, str]
    elsewhere: Elsewhere
    log: Path
    web: subprocess.Popen[bytes]

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def client(self, token: str | None, **headers: str) -> httpx.Client:
        """Return a plain HTTP client, for what the official one would never send."""
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        accepted = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        return httpx.Client(headers=accepted | authorization | headers, timeout=30, trust_env=False)


@contextmanager
def running_site(redis: str, **variables: str) -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="backlog-mcp-") as folder,
        new_database(Path(folder), migrated=True) as database,
    ):
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        environment = {
            **os.environ,
            **{
                "DATABASE_URL": database,
                "REDIS_URL": redis,
                "BACKLOG_DATA_DIR": folder,
                "BACKLOG_PUBLIC_URL": url,
            },
            **{
                "DJANGO_SETTINGS_MODULE": "tests.mcp.fixture.settings",
                "BACKLOG_DRAIN_SECONDS": "0",
            },
            **variables,
        }
        if environment["DATABASE_URL"] != database:  # an empty one for this test
            databases.migrate(environment["DATABASE_URL"])
        elsewhere = Elsewhere(environment)
        log = Path(folder) / "web.log"
        try:
            with web_processes(environment, port, log) as web:
                yield Site(url, environment, elsewhere, log, web)
        finally:
            elsewhere.close()


@contextmanager
def new_database(folder: Path, *, migrated: bool = False) -> Iterator[str]:
    """Yield the URL of a database beside pytest-django's, which other processes cannot read while a
    test runs.
    """
    server = os.environ.get("DATABASE_URL", "")
    if not server.startswith("postgres"):
        file = folder / "site.sqlite3"
        if migrated:
            databases.copy_sqlite_template(file)
        yield f"sqlite:///{file}"
        return
    name = f"mcp_{os.getpid()}_{time.time_ns()}"
    try:
        yield databases.create_postgres(server, name, migrated=migrated)
    finally:
        databases.drop_postgres(server, name)


@contextmanager
def web_processes(
    environment: dict[str, str], port: int, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        *(
            sys.executable,
            "-m",
            "tests.servers.web",
            "backlog_site.asgi:application",
            "--port",
            str(port),
            "--workers",
            "2",
        ),
        *(
            "--lifespan",
            "on",
            "--no-access-log",
            "--log-level",
            "warning",
            "--timeout-graceful-shutdown",
            "1",
        ),
    ]
    _wait_until_free(port)
    with log.open("ab") as output:
        process = fork(command, output=output, environment=environment, folder=ROOT)
    try:
        _wait_until_it_answers(port, process, log)
        yield process
    finally:
        stop(process)


def _wait_until_free(port: int) -> None:
    """Wait for a killed server's processes to end: the last of them closes the socket."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < deadline, f"port {port} is still in use"
            time.sleep(0.02)
        else:
            return


def _wait_until_it_answers(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.get(f"http://127.0.0.1:{port}/mcp", timeout=2, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"The site did not start:\n{log.read_text(errors='replace')}")
