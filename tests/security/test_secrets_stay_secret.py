"""Test every kind of secret in every form an error carries it: logs, job errors, admin and
metrics.
"""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.middleware.csrf import get_token
from django.test import Client, RequestFactory
from django.utils import timezone

from backlog_site.operations.log_scrubbing import scrub
from resources_app.identity import tokens
from resources_app.jobs import queue
from resources_app.models import Job
from resources_app.reading.by_address import read
from resources_app.safety.scrubbing import MASK, scrub_text
from tests.accounts.flow import agree, client_id, exchange, question
from tests.api.clients import ApiClient
from tests.factories import as_actor

PASSWORD = "correct horse battery"
SID, PRODUCT_KEY, LOGIN_TOKEN = "4f1c9b7ee0d24d2cbb", "pk-77812-zebra", "SFMyNTY.g2gDbQAAAB.x9K"
DATABASE_PASSWORD, REDIS_PASSWORD = "db-pass-81723", "redis-pass-55120"


@pytest.fixture
def secrets(alice: User, settings: Any) -> dict[str, str]:
    settings.DATABASES["default"]["PASSWORD"] = DATABASE_PASSWORD
    settings.REDIS_URL = f"redis://:{REDIS_PASSWORD}@127.0.0.1:6379/0"
    client = client_id()
    code = agree(alice, question(client))["code"]
    granted = exchange(client, code).json()
    session = SessionStore()
    session.create()
    return {
        "api token": tokens.create(alice, "laptop", "write")[1],
        "access_token": granted["access_token"],
        "refresh_token": granted["refresh_token"],
        "code": code,
        "sessionid": str(session.session_key),
        "csrftoken": get_token(RequestFactory().get("/")),
        "password": PASSWORD,
        "p80": "hunter2!",
        "sid": SID,
        "product_key": PRODUCT_KEY,
        "token": LOGIN_TOKEN,
        "SECRET_KEY": settings.SECRET_KEY,
        "database password": DATABASE_PASSWORD,
        "redis password": REDIS_PASSWORD,
    }


@pytest.fixture(autouse=True)
def database_settings_as_they_were() -> Iterator[None]:
    before = settings.DATABASES["default"].get("PASSWORD")
    yield
    settings.DATABASES["default"]["PASSWORD"] = before


def texts(secrets: dict[str, str]) -> list[tuple[str, str]]:
    """Return each secret with the sentences in which programs quote it."""
    bare = {
        "api token",
        "access_token",
        "refresh_token",
        "token",
        "SECRET_KEY",
        "database password",
        "redis password",
    }
    found = [(secrets[name], f"refused {secrets[name]} at once") for name in bare]
    for name, secret in secrets.items():
        if " " in name:
            continue
        found += [
            (secret, json.dumps({name: secret, "user": "me"})),
            (secret, repr({name: secret})),
        ]
        found += [(secret, repr([(name.encode(), secret.encode())]))]
        if " " not in secret:
            found += [
                (secret, f"GET /x?{name}={secret}&y=1"),
                (secret, f"{name}: {secret}"),
                (secret, f"{name}={secret}"),
            ]
    access = secrets["access_token"]
    found += [
        (access, f"{scheme}{access}")
        for scheme in ("Authorization: Bearer ", "authorization: bearer   ")
    ]
    found += [
        (SID, f"Cookie: theme=dark; sid={SID}"),
        ("aHVudGVyMjpodW50ZXIy", "Basic aHVudGVyMjpodW50ZXIy"),
    ]
    found += [
        (DATABASE_PASSWORD, f"postgres://backlog:{DATABASE_PASSWORD}@db:5432/backlog"),
        (REDIS_PASSWORD, f"Error 111 connecting to redis://:{REDIS_PASSWORD}@cache:6379/0"),
        ("p@ss", "connect https://me:p@ss@ib.example/x"),
        (secrets["sessionid"], f"Set-Cookie: sessionid={secrets['sessionid']}; HttpOnly"),
        (secrets["csrftoken"], f"X-CSRFToken: {secrets['csrftoken']}"),
        (secrets["csrftoken"], f"csrfmiddlewaretoken={secrets['csrftoken']}&title=T"),
        (SID, f"{{'headers': {{'sid': '{SID}'}}}}"),
        (PRODUCT_KEY, f"p60={PRODUCT_KEY}"),
    ]
    return found


@pytest.fixture
def log() -> Iterator[Any]:
    """Return what the site's own formatter writes for one event."""
    stream = io.StringIO()
    options = settings.LOGGING["formatters"]["structured"]
    *kept, _renderer = options["processors"]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=options["foreign_pre_chain"],
        processors=[*kept, structlog.processors.JSONRenderer()],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("backlog.secrets")
    logger.addHandler(handler)
    logger.setLevel("INFO")

    def write(text: str) -> str:
        try:
            raise ValueError(text)
        except ValueError:
            logger.exception("failed: %s", text)
        return stream.getvalue()

    yield write
    logger.removeHandler(handler)


def test_no_secret_is_logged_or_kept_in_a_job_error(secrets: dict[str, str], log: Any) -> None:
    for secret, text in texts(secrets):
        for shown in (scrub_text(text), queue.describe(RuntimeError(text)), log(text)):
            assert MASK in shown and secret not in shown, text


def test_a_field_of_an_event_that_is_named_as_a_secret_is_masked_as_a_whole() -> None:
    for name in (
        "password",
        "sid",
        "p80",
        "product_key",
        "sessionid",
        "refresh_token",
        "Authorization",
        "cookie",
    ):
        event = scrub(
            None, "info", {"event": "x", name: "plain words", "headers": {name: "plain words"}}
        )
        assert event == {"event": "x", name: MASK, "headers": {name: MASK}}


def test_no_secret_of_a_failed_job_is_shown_by_admin_desk_address_or_metrics(
    secrets: dict[str, str], carol: User
) -> None:
    browser = Client()
    browser.force_login(User.objects.get(username="carol"))
    User.objects.filter(pk=carol.pk).update(is_staff=True, is_superuser=True)
    quoted = texts(secrets)
    now = timezone.now()
    for number, (_, text) in enumerate(quoted):
        last = {"state": "running", "attempts": queue.MAX_ATTEMPTS}
        job = Job.objects.create(kind="odd", key=str(number), run_at=now, created_at=now, **last)
        queue.RunningJob(job.pk, "odd", {}, queue.MAX_ATTEMPTS).fail(
            queue.describe(RuntimeError(text))
        )
    shown = [
        browser.get("/admin/resources_app/job/").content.decode(),
        *(
            browser.get(f"/admin/resources_app/job/{pk}/change/").content.decode()
            for pk in _job_ids()
        ),
        browser.get("/admin/").content.decode(),
        browser.get("/").content.decode(),
        str(read(as_actor(carol), "workflow://workflows").contents),
        ApiClient(carol, scope="admin").get("/metrics").content.decode(),
    ]
    assert "RuntimeError" in shown[1]
    own = {secrets["csrftoken"]}
    for secret, _ in quoted:
        assert secret in own or not any(secret in page for page in shown)


def _job_ids() -> list[int]:
    return list(Job.objects.values_list("pk", flat=True))


@pytest.mark.parametrize(
    "text",
    [
        "status_code=404",
        "tokens: 300",
        "error code 7",
        "inside: the box",
        "http://127.0.0.1:8000/api/v1/tasks/",
        "wrong password, try again",
        "mcp://backlog/tasks/TASK-0001",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str, db: None) -> None:
    assert scrub_text(text) == text
