"""Test that mcp_inspect shows what an agent finds."""

import io

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.models import ApiToken
from tests.factories import make_task
from tests.mcp.test_tools import TOOLS

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def test_it_lists_tools_resources_templates_and_prompts(carol: User) -> None:
    make_task(title="Seen in the list")
    out = io.StringIO()
    call_command("mcp_inspect", stdout=out)
    assert all(f"  {tool}: " in out.getvalue() for tool in TOOLS)
    assert "mcp://backlog/tasks/{id}: " in out.getvalue() and "plan_epic: " in out.getvalue()
    assert not ApiToken.objects.filter(revoked_at__isnull=True).exists()


def test_without_an_admin_it_says_what_to_do(alice: User) -> None:
    with pytest.raises(CommandError, match="createsuperuser"):
        call_command("mcp_inspect")
