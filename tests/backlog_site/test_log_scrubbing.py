"""Test that no secret reaches the logs, from any part of an event or a traceback."""

import io
import json
import logging
import logging.config
from typing import Any

import pytest
import structlog
from django.conf import settings

from resources_app.safety.scrubbing import MASK, scrub_text

TOKEN = "bl_" + "Zk3" * 15


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (f"token {TOKEN} was refused", "was refused"),
        ("bo_" + "a" * 43, ""),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer"),
        ("Basic aHVudGVyMjpodW50ZXIy", "Basic"),
        ("postgres://backlog:hunter2@db:5432/x", "@db:5432/x"),
        ("POST /o/token/?code=hunter2&state=1", "&state=1"),
        ("{'client_secret': 'hunter2', 'name': 'x'}", "'name': 'x'"),
        ('{"password": "hunter2", "refresh_token": "hunter2"}', '"password": "'),
        ("SECRET_KEY=hunter2", "SECRET_KEY="),
        ("code_verifier=hunter2", "code_verifier="),
        ("Cookie: sessionid=hunter2; theme=dark", "theme=dark"),
    ],
)
def test_a_secret_is_masked_and_the_rest_stays(text: str, kept: str) -> None:
    masked = scrub_text(text)
    assert MASK in masked and kept in masked
    assert not any(secret in masked for secret in ("hunter2", "Zk3", "aaaaaa", "aHVudGVyMj"))


@pytest.mark.parametrize(
    "text", ["status_code=404", "tokens: 300", "mcp://backlog/tasks/TASK-0001", "error code 7"]
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert scrub_text(text) == text


@pytest.fixture
def logged() -> Any:
    """Return what the site's own formatter writes."""
    stream = io.StringIO()
    options = settings.LOGGING["formatters"]["structured"] | {"processors": _processors()}
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(**{k: v for k, v in options.items() if k != "()"})
    )
    logger = logging.getLogger("backlog.scrubbed")
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield logger, lambda: stream.getvalue()
    logger.removeHandler(handler)


def _processors() -> list[Any]:
    *kept, _renderer = settings.LOGGING["formatters"]["structured"]["processors"]
    return [*kept, structlog.processors.JSONRenderer()]


def test_a_traceback_with_a_token_in_it_is_masked(logged: Any) -> None:
    logger, written = logged
    try:
        raise ValueError(f"cannot use {TOKEN}")
    except ValueError:
        logger.exception("failed for %s", f"Bearer {TOKEN}")
    event = json.loads(written())
    assert "ValueError" in event["exception"] and "Zk3" not in written()


def test_fields_of_an_event_are_masked_however_deep(logged: Any) -> None:
    logger, written = logged
    structlog.wrap_logger(logger, processors=settings_processors()).info(
        "asked", headers={"auth": [f"Bearer {TOKEN}"]}
    )
    assert "asked" in written() and "Zk3" not in written()


def settings_processors() -> list[Any]:
    return list(structlog.get_config()["processors"])
