"""Test that the documented steps of a deployment work as written."""

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.contrib.auth.models import User
from django.core.management import call_command

from backlog_site.devserver.embedded import spawn, stop
from resources_app.identity import tokens
from tests.api.clients import ApiClient
from tests.faults.surroundings import eventually
from tests.other_processes import shared_environment

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OF_THE_SITE = ("migrate", "web", "worker", "beat")


def test_compose_passes_every_documented_variable_to_every_process() -> None:
    for name in OF_THE_SITE:
        assert COMPOSE["services"][name]["env_file"] == [{"path": ".env", "required": False}]
    fixed = set(COMPOSE["services"]["web"]["environment"])
    assert fixed == {
        "SECRET_KEY",
        "DATABASE_URL",
        "REDIS_URL",
        "BACKLOG_PUBLIC_URL",
        "BACKLOG_TRUSTED_PROXIES",
    }


def test_compose_keeps_the_certificates_of_the_proxy() -> None:
    assert COMPOSE["services"]["proxy"]["volumes"] == ["proxy:/data"]
    assert "proxy" in COMPOSE["volumes"]


def test_compose_and_the_page_use_the_same_variables() -> None:
    used = set(re.findall(r"\$\{(\w+)", (ROOT / "docker-compose.yml").read_text()))
    page = (ROOT / "docs/operate.md").read_text() + (ROOT / "docker-compose.yml").read_text().split(
        "x-site"
    )[0]
    assert not {name for name in used if name not in page}


@pytest.mark.process
@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_the_documented_scheduler_starts_where_its_folder_is_not_writable(tmp_path: Path) -> None:
    (line,) = re.findall(
        r"^python (-m celery .* beat .*)$", (ROOT / "docs/scaling.md").read_text(), re.MULTILINE
    )
    schedule = tmp_path / "celerybeat-schedule"
    arguments = [
        str(schedule) if word.endswith("celerybeat-schedule") else word
        for word in shlex.split(line)
    ]
    log = tmp_path / "beat.log"
    with log.open("wb") as output:
        environment = shared_environment(tmp_path) | {"PYTHONPATH": str(ROOT)}
        process = spawn(
            [sys.executable, *arguments], output=output, environment=environment, folder=Path("/")
        )
    try:
        assert eventually(
            lambda: list(tmp_path.glob("celerybeat-schedule*")) or process.poll() is not None
        )
        assert process.poll() is None, log.read_text()
    finally:
        stop(process)
    assert not list(Path("/").glob("celerybeat-schedule*"))


@pytest.mark.django_db
def test_the_first_account_is_an_admin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_SUPERUSER_PASSWORD", "a long and random one")
    call_command(
        "createsuperuser", "--no-input", "--username", "first", "--email", "first@example.org"
    )
    assert tokens.first_admin() == User.objects.get(username="first")


@pytest.mark.django_db
def test_prometheus_reads_an_https_site_at_the_port_of_a_process(
    carol: User, settings: Any
) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert ApiClient(carol).get("/metrics").status_code == 200
    assert ApiClient(carol).get("/api/v1/tasks/").status_code == 301
