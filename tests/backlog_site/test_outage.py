"""Test that a page answers 503 with Retry-After while the database is unreachable, in words for
people.
"""

from typing import Any

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.test import Client

from backlog_site.serving.outage import outage


def test_a_page_that_meets_a_lost_database_answers_503(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(self: SessionStore) -> Any:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(SessionStore, "load", lost)
    monkeypatch.setattr(outage, "suspect", lambda error: None)
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = "a" * 32
    answer = client.get("/board/")
    assert (answer.status_code, answer["Retry-After"]) == (503, "2")
    assert "unreachable" in answer.content.decode()
