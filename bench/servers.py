"""Run the databases and server processes of a run, all on loopback and removed afterwards."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import psycopg

from backlog_site.devserver.embedded import free_port, spawn, stop, throwaway_valkey
from bench.calls import BenchFailed
from tests.servers.postgres import throwaway_postgres

ROOT = Path(__file__).resolve().parent.parent
STARTED_WITHIN = 180.0
Environment = dict[str, str]
# Name → environment of a site with a separate database: empty tables, or none with `bare`.
Surroundings = Callable[..., Environment]
TEMPLATE = "template"


@dataclass(frozen=True)
class Filled:
    token: str
    reindex_docs_per_cpu_s: float
    index_update_p95_ms: float


@dataclass(frozen=True)
class Server:
    process: psutil.Process
    url: str
    token: str
    cold_start_s: float
    cold_start_cpu_s: float

    def cpu_s(self) -> float:
        return cpu_s(self.process)

    def rss_mb(self) -> float:
        return float(self.process.memory_info().rss) / 1_000_000

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=120, trust_env=False)


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def surroundings(database: str) -> Iterator[Surroundings]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="backlog-bench-")))
        valkey = stack.enter_context(throwaway_valkey())
        postgres = stack.enter_context(throwaway_postgres()) if database == "postgres" else ""

        def environment(name: object, *, bare: bool = False) -> Environment:
            """Return an environment.

            The tables are made once and copied: making them takes longer than a short run.
            """
            own, template = folder / str(name), folder / TEMPLATE
            if not bare and not template.exists():
                manage(environment(TEMPLATE, bare=True), "migrate", "--verbosity", "0")
            own.mkdir() if bare else shutil.copytree(template, own)
            url = (
                _create_database(postgres, f"bench_{name}", None if bare else f"bench_{TEMPLATE}")
                if postgres
                else ""
            )
            return _inherited() | {
                "BACKLOG_DATA_DIR": str(own),
                "DATABASE_URL": url,
                "REDIS_URL": valkey,
                "BACKLOG_LOG_FORMAT": "json",
                "DJANGO_SETTINGS_MODULE": "bench.settings",
            }

        yield environment


def _inherited() -> Environment:
    """Return the environment without the caller's site settings, which would affect the
    measurement.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("BACKLOG_")}


def _create_database(server: str, name: str, template: str | None) -> str:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
    return f"{server.rpartition('/')[0]}/{name}"


def manage(environment: Environment, *arguments: str) -> str:
    """Return the output of the command.

    Runs in a separate process, because Django has one database per process.
    """
    command = [sys.executable, "manage.py", *arguments]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise BenchFailed(f"{arguments[0]} failed:\n{run.stderr[-2000:]}")
    return run.stdout


def fill(environment: Environment, tasks: int) -> Filled:
    return Filled(**json.loads(manage(environment, "fill_bench", str(tasks))))


@contextmanager
def running_server(environment: Environment, token: str) -> Iterator[Server]:
    """Run one web process as `make run` starts it.

    Its cold start ends with the first task it shows.
    """
    port = free_port()
    log = Path(environment["BACKLOG_DATA_DIR"]) / "server.log"
    with log.open("wb") as output:
        began = time.perf_counter()
        process = spawn(_command(port), output=output, environment=environment, folder=ROOT)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for_first_answer(url, token, process, log)
        ready = time.perf_counter() - began
        web = psutil.Process(process.pid)
        yield Server(web, url, token, ready, cpu_s(web))
    finally:
        stop(process)


def _command(port: int) -> list[str]:
    return [
        *(sys.executable, "-m", "uvicorn", "backlog_site.asgi:application", "--port", str(port)),
        *(
            "--no-proxy-headers",
            "--no-access-log",
            "--no-server-header",
            "--log-level",
            "warning",
            "--lifespan",
            "on",
        ),
    ]


def _wait_for_first_answer(
    url: str, token: str, process: subprocess.Popen[bytes], log: Path
) -> None:
    deadline = time.monotonic() + STARTED_WITHIN
    with httpx.Client(
        base_url=url, headers={"Authorization": f"Bearer {token}"}, trust_env=False
    ) as client:
        while not _answers(client):
            if process.poll() is not None or time.monotonic() > deadline:
                raise BenchFailed(
                    f"The server did not start:\n{log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.02)


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/api/v1/tasks/TASK-0002/").status_code == httpx.codes.OK
    except httpx.TransportError:
        return False
