"""Test liveness and readiness: a missing server is named, and a frozen one cannot delay the
response.
"""

import json
import os
import signal
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.urls import path
from django.utils import timezone

from backlog_site.devserver.embedded import free_port, throwaway_valkey
from backlog_site.operations import health
from resources_app.jobs import queue
from resources_app.models import Job
from tests.other_processes import environment, run

urlpatterns = [path("healthz", health.healthz), path("readyz", health.readyz)]
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def client() -> Client:
    return Client()


def ready(client: Client, status: int) -> dict[str, Any]:
    response = client.get("/readyz")
    assert response.status_code == status, response.content
    assert "no-store" in response.headers["Cache-Control"]
    body: dict[str, Any] = response.json()
    return body


def test_alive_asks_nobody(client: Client) -> None:
    # Without the database fixture any query would raise.
    assert client.get("/healthz").json() == {"status": "ok"}


@pytest.mark.parametrize("address", ["/healthz", "/readyz"])
def test_other_methods_are_refused_in_the_one_body(client: Client, address: str) -> None:
    response = client.post(address)
    assert response.status_code == 405
    assert response.json()["error"]["details"]["allowed"] == ["GET", "HEAD"]


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_ready_when_all_answer(client: Client) -> None:
    checks = {
        "database": "ok",
        "migrations": "ok",
        "redis": "ok",
        "job_lag_seconds": 0.0,
        "disk": "ok",
    }
    assert ready(client, 200) == {"status": "ok", "checks": checks}


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_without_redis_it_is_degraded_and_still_ready(client: Client, settings: Any) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}"
    body = ready(client, 200)
    assert (body["status"], body["checks"]["redis"]) == ("degraded", "unavailable")


@pytest.fixture
def frozen_redis(settings: Any) -> Iterator[None]:
    with throwaway_valkey() as url:
        with redis.Redis.from_url(url) as client:
            process = int(client.info("server")["process_id"])
        settings.REDIS_URL = url
        os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process, signal.SIGCONT)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_frozen_redis_is_degraded_too(client: Client, frozen_redis: None) -> None:
    assert ready(client, 200)["status"] == "degraded"


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_jobs_that_wait_too_long_are_degraded(client: Client) -> None:
    job = queue.enqueue("note", {})
    Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - timedelta(minutes=10))
    body = ready(client, 200)
    assert body["status"] == "degraded"
    assert body["checks"]["job_lag_seconds"] >= 600


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_disk_without_room_is_degraded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "FULL_BYTES", 10**18)
    body = ready(client, 200)
    assert (body["status"], body["checks"]["disk"]) == ("degraded", "full")


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_missing_migration_is_not_ready(client: Client) -> None:
    recorder = MigrationRecorder(connection)
    [newest] = MigrationLoader(connection).graph.leaf_nodes("resources_app")
    recorder.record_unapplied(*newest)
    try:
        body = ready(client, 503)
    finally:
        recorder.record_applied(*newest)
    assert (body["status"], body["checks"]["migrations"]) == ("unavailable", "missing")
    assert (body["error"]["code"], body["error"]["retryable"]) == ("unavailable", True)
    assert body["error"]["details"] == {"missing_migrations": [".".join(newest)]}


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_process_that_is_older_than_its_database_is_drained(
    client: Client, newer_schema: str
) -> None:
    body = ready(client, 503)
    assert (body["status"], body["checks"]["migrations"]) == ("unavailable", "newer")
    assert body["error"]["details"] == {"unknown_migrations": [newer_schema]}
    assert newer_schema in body["error"]["message"] and body["error"]["retryable"]


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_migrations_of_other_packages_do_not_drain_a_process(client: Client) -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("auth", "9999_squashed_long_ago")
    try:
        assert ready(client, 200)["status"] == "ok"
    finally:
        recorder.record_unapplied("auth", "9999_squashed_long_ago")


ASK = """
from django.test import RequestFactory
from backlog_site.operations.health import readyz
answer = readyz(RequestFactory().get("/readyz"))
print(answer.status_code, answer.content.decode())
"""


@pytest.mark.parametrize(
    "url", ["postgres://me:hunter2@127.0.0.1:1/backlog", "sqlite:////nowhere/backlog.sqlite3"]
)
def test_a_database_that_is_away_is_not_ready(url: str, tmp_path: Path) -> None:
    status, _, body = run(environment(tmp_path, url), ASK).partition(" ")
    answer = json.loads(body)
    assert (status, answer["status"], answer["checks"]["database"]) == (
        "503",
        "unavailable",
        "unavailable",
    )
    assert answer["checks"]["redis"] == "ok"
    assert "nowhere" not in body and "hunter2" not in body


def test_a_database_that_never_answers_is_not_ready_and_is_asked_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, asked = threading.Event(), []

    def ask() -> dict[str, Any]:
        asked.append(1)
        answered.wait()
        return {"database": "ok"}

    probe = health.Probe(ask)
    monkeypatch.setattr(health, "_database", probe)
    monkeypatch.setattr(health, "PATIENCE_SECONDS", 0.1)
    try:
        bodies = [ready(client, 503) for _ in range(3)]
    finally:
        answered.set()
        probe._thread.shutdown()  # waits for questions that queued up behind the first
    assert [body["checks"]["database"] for body in bodies] == ["unavailable"] * 3
    assert len(asked) == 1
