"""Test service accounts: a role, tokens, a responsible user, and no way to sign in."""

from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.errors import PermissionDenied, ValidationFailed
from resources_app.identity import service_accounts, tokens
from resources_app.identity.roles import may_write
from tests.resources_app.admin_client import enter, url


def test_a_service_account_acts_by_token_within_its_role(alice: User) -> None:
    account = service_accounts.create("ci-bot", "contributor", alice, "files failing builds")
    assert may_write(account.user)
    _, secret = tokens.create(account.user, "builds", "write")
    assert tokens.authenticate(secret).user == account.user
    with pytest.raises(PermissionDenied):
        tokens.create(account.user, "too far", "admin")


def test_it_cannot_sign_in_even_with_a_password(alice: User) -> None:
    account = service_accounts.create("ci-bot", "viewer", alice, "reads")
    account.user.set_password("secret enough")
    account.user.save()
    assert authenticate(username="ci-bot", password="secret enough") is None
    alice.set_password("secret enough")
    alice.save()
    assert authenticate(username="alice", password="secret enough") == alice


@pytest.mark.parametrize(
    "over",
    [
        {"username": "alice"},
        {"username": "a b"},
        {"username": ""},
        {"role": "king"},
        {"purpose": " "},
    ],
)
def test_an_account_that_says_too_little_is_refused(alice: User, over: dict[str, str]) -> None:
    with pytest.raises(ValidationFailed):
        service_accounts.create(
            **{"username": "bot", "role": "viewer", "owner": alice, "purpose": "x"} | over
        )


def test_the_command_makes_one(alice: User) -> None:
    out = StringIO()
    call_command(
        "create_service_account", "bot", role="viewer", owner="alice", purpose="reads", stdout=out
    )
    assert "create_token bot" in out.getvalue()
    with pytest.raises(CommandError, match="already"):
        call_command("create_service_account", "bot", role="viewer", owner="alice", purpose="reads")
    with pytest.raises(CommandError, match="no active user"):
        call_command(
            "create_service_account", "other", role="viewer", owner="nobody", purpose="reads"
        )


def test_the_admin_makes_one_and_shows_it(alice: User) -> None:
    client = enter()
    fields = {
        "username": "bot",
        "role": "contributor",
        "owner": alice.pk,
        "purpose": "files builds",
    }
    assert client.post(url("serviceaccount_add"), fields).status_code == 302
    page = client.get(url("serviceaccount_changelist")).content.decode()
    assert "files builds" in page and "contributor" in page
    assert client.post(url("serviceaccount_add"), fields).status_code == 200
