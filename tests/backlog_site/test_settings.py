"""Test the settings as processes read them: what is rejected at start-up, and what an https address
enables.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from backlog_site.env import Environment

ROOT = Path(__file__).resolve().parents[2]
STRONG = "k7Yp2-Qm9xVb3LzR8tWc5NdF1hGj6KsA0eUiOoPyTrEwQaZxSw"
HTTPS = {"BACKLOG_PUBLIC_URL": "https://backlog.example.org", "SECRET_KEY": STRONG}


def manage(tmp_path: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        key: value
        for key, value in os.environ.items()
        if key not in {"SECRET_KEY", "BACKLOG_PUBLIC_URL"}
    }
    environment |= {
        "BACKLOG_DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
        **variables,
    }
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"SECRET_KEY": ""}, "must be set"),
        ({"SECRET_KEY": "django-insecure-" + STRONG}, "too easy to guess"),
        ({"SECRET_KEY": "a" * 60}, "too easy to guess"),
        ({"SECRET_KEY": STRONG[:30]}, "too easy to guess"),
        ({"BACKLOG_DEBUG": "1"}, "BACKLOG_DEBUG"),
    ],
)
def test_a_public_site_does_not_start_with_what_is_unsafe(
    tmp_path: Path, variables: dict[str, str], reason: str
) -> None:
    refused = manage(tmp_path, "check", **HTTPS | variables)
    assert refused.returncode and reason in refused.stderr.splitlines()[-1]


def test_the_deployment_check_finds_nothing(tmp_path: Path) -> None:
    found = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **HTTPS)
    assert not found.returncode, found.stderr


def test_an_https_address_switches_on_what_protects_it(tmp_path: Path) -> None:
    names = (
        "SECURE_HSTS_SECONDS SESSION_COOKIE_SECURE CSRF_COOKIE_SECURE SECURE_SSL_REDIRECT"
        " X_FRAME_OPTIONS DEBUG"
    )
    code = (
        "import json; from django.conf import settings; print(json.dumps([getattr(settings, n) for"
        f" n in {names.split()}]))"
    )
    shown = manage(tmp_path, "shell", "--no-imports", "-c", code, **HTTPS)
    assert json.loads(shown.stdout) == [31_536_000, True, True, True, "DENY", False]


def test_commands_beside_a_running_demo_trust_its_library(tmp_path: Path) -> None:
    (tmp_path / "demo-library").write_text("http://127.0.0.1:9101 http://127.0.0.1:9102")
    code = "from django.conf import settings; print(*settings.IB_LOCAL_ORIGINS)"
    shown = manage(
        tmp_path,
        "shell",
        "--no-imports",
        "-c",
        code,
        BACKLOG_IB_LOCAL_ORIGINS="http://127.0.0.1:9201",
    )
    assert shown.stdout.split() == [
        "http://127.0.0.1:9201",
        "http://127.0.0.1:9101",
        "http://127.0.0.1:9102",
    ]


def environment_with(**variables: Any) -> Environment:
    return Environment({key: str(value) for key, value in variables.items()})


def test_a_secret_can_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("from the file\n")
    assert environment_with(SECRET_KEY_FILE=tmp_path / "key").text("SECRET_KEY") == "from the file"
    with pytest.raises(ImproperlyConfigured, match="both set"):
        environment_with(SECRET_KEY_FILE=tmp_path / "key", SECRET_KEY="x").text("SECRET_KEY")
    with pytest.raises(ImproperlyConfigured, match="cannot be read"):
        environment_with(SECRET_KEY_FILE=tmp_path / "absent").text("SECRET_KEY")


def test_a_refused_address_does_not_tell_its_password() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        environment_with(DATABASE_URL="mysql://backlog:hunter2@db/x").url(
            "DATABASE_URL", "", ("postgres",)
        )
    assert "hunter2" not in str(refused.value)
