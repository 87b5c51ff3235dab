"""Test that doctor finds what was broken, says what to do, and leaves nothing behind."""

import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from backlog_site.operations.doctor import examine
from resources_app.models import ApiToken
from search_app.models import Document
from tests.factories import make_task

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)
NOBODY = "http://127.0.0.1:9"


def levels(**over: Any) -> dict[str, str]:
    return {finding.subject: finding.level for finding in examine(NOBODY)} | over


def test_what_is_away_is_named_with_what_to_do(carol: User) -> None:
    findings = {finding.subject: finding for finding in examine(NOBODY)}
    assert (
        findings["database"].level
        == findings["broker"].level
        == findings["search index"].level
        == "ok"
    )
    assert findings["worker"].level == findings["MCP"].level == "problem"
    assert "make run" in findings["worker"].advice and "--url" in findings["MCP"].advice


def test_a_broker_that_is_away_is_a_problem(carol: User, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    assert levels()["broker"] == "problem"


def test_an_index_that_lacks_a_document_is_reported(carol: User) -> None:
    make_task()
    Document.objects.all().delete()
    assert levels()["search index"] == "warning"


def test_a_folder_that_is_gone_is_reported(carol: User, settings: Any, tmp_path: Any) -> None:
    settings.RESOURCE_ROOTS = {"here": str(tmp_path), "gone": str(tmp_path / "gone")}
    roots = [finding for finding in examine(NOBODY) if finding.subject == "resource root"]
    assert [finding.level for finding in roots] == ["ok", "warning"]


def test_without_an_admin_there_is_nobody_to_ask_as(alice: User) -> None:
    found = next(finding for finding in examine(NOBODY) if finding.subject == "MCP")
    assert (found.level, found.advice) == ("problem", "Run: python manage.py createsuperuser")


def test_its_token_ends_with_it(carol: User) -> None:
    levels()
    assert not ApiToken.objects.filter(revoked_at__isnull=True).exists()


def test_the_command_fails_when_something_does_not_work(carol: User) -> None:
    out = io.StringIO()
    with pytest.raises(CommandError, match="found a problem"):
        call_command("doctor", url=NOBODY, json=True, stdout=out)
    assert {"level", "subject", "message", "advice"} == set(json.loads(out.getvalue())[0])
