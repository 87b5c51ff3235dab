"""Test that doctor finds deployment mistakes: a missing scheduler, keys that differ, wrong proxies,
an unwritable folder.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.test import Client

from backlog_site.devserver.embedded import running_valkey
from backlog_site.operations import deployment
from backlog_site.operations.deployment import FORGED_ADDRESS
from backlog_site.operations.findings import Finding
from backlog_site.serving import presence
from tests.faults.surroundings import beat, eventually, served, worker


def subjects(findings: Iterator[Finding]) -> dict[str, str]:
    return {finding.subject: finding.level for finding in findings}


@pytest.fixture(autouse=True)
def a_site_by_itself(settings: Any, request: pytest.FixtureRequest) -> None:
    """Isolate the site: others of this run announce their processes in the same Valkey."""
    settings.PUBLIC_URL = f"http://{request.node.name.replace('_', '-')}.example.org"


def test_a_missing_scheduler_is_found() -> None:
    presence.announce("web")
    assert eventually(presence.announced)
    assert subjects(deployment.processes()) == {"beat": "warning", "processes": "ok"}


def test_a_process_with_another_key_is_found(settings: Any) -> None:
    presence.announce("beat")
    assert eventually(presence.announced)
    settings.SECRET_KEY = "another key, as long and as random as the first one was"
    assert subjects(deployment.processes()) == {"SECRET_KEY": "problem"}


def test_worker_scheduler_and_web_announce_themselves(
    settings: Any, redis_url: str, redis_home: Path
) -> None:
    settings.REDIS_URL = redis_url
    with (
        running_valkey(redis_url, redis_home),
        served(
            redis_url, BACKLOG_PUBLIC_URL=settings.PUBLIC_URL, SECRET_KEY=settings.SECRET_KEY
        ) as (site, *_),
        worker(site),
        beat(site),
    ):
        assert eventually(
            lambda: {process.kind for process in presence.announced()} == {"web", "worker", "beat"}
        )
        assert subjects(deployment.processes()) == {"processes": "ok"}


@contextmanager
def in_front_of(client: Client, *proxies: str) -> Iterator[str]:
    """Serve the site over HTTP, with the header that the given proxies would have made."""

    class Passing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            forwarded = ", ".join([self.headers["X-Forwarded-For"], *proxies])
            headers = {
                "X-Backlog-Doctor": self.headers["X-Backlog-Doctor"],
                "X-Forwarded-For": forwarded,
            }
            address = FORGED_ADDRESS if not proxies else proxies[0]
            body = client.get(self.path, headers=headers, REMOTE_ADDR=address).content
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@pytest.mark.parametrize(
    ("trusted", "proxies", "level"),
    [(0, (), "ok"), (1, ("10.0.0.9",), "ok"), (1, (), "problem"), (0, ("10.0.0.9",), "warning")],
)
def test_a_wrong_number_of_proxies_is_found(
    settings: Any, client: Client, trusted: int, proxies: tuple[str, ...], level: str
) -> None:
    settings.TRUSTED_PROXIES = trusted
    settings.ALLOWED_HOSTS = ["*"]
    with in_front_of(client, *proxies) as url:
        assert subjects(deployment.proxies(url)) == {"proxies": level}


def test_the_address_is_shown_to_the_doctor_alone(client: Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get(
        "/healthz", headers={"X-Backlog-Doctor": "doctor:forged:signature"}
    ).json() == {"status": "ok"}


def test_an_unwritable_data_folder_is_found(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "gone"
    assert subjects(deployment.data_folder()) == {"data folder": "problem"}
    settings.DATA_DIR = tmp_path
    assert subjects(deployment.data_folder()) == {}


def test_debug_is_reported_without_https_too(settings: Any) -> None:
    settings.DEBUG = True
    assert [finding.level for finding in deployment.settings_in_production()] == ["warning", "ok"]


def test_silenced_checks_are_not_reported(settings: Any) -> None:
    settings.PUBLIC_URL = "https://backlog.example.org"
    reported = [finding.message for finding in deployment.settings_in_production()]
    assert not [message for message in reported if message.startswith("oauth2_provider")]


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no sessions to look at")
def test_a_transaction_left_open_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "LONG_TRANSACTION_SECONDS", 0)
    parts = connection.settings_dict
    address = {
        "host": parts["HOST"],
        "port": parts["PORT"],
        "user": parts["USER"],
        "password": parts["PASSWORD"],
    }
    with psycopg.connect(dbname=parts["NAME"], **address) as other:
        other.execute("SELECT 1")
        advice = f"pg_terminate_backend({other.info.backend_pid})"
        assert any(advice in finding.advice for finding in deployment.transactions())
