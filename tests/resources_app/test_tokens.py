"""Test API tokens: recognised only while valid, never exceeding the role, and cheap to check."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from resources_app.errors import PermissionDenied, ValidationFailed
from resources_app.identity import tokens
from resources_app.models import ApiToken
from tests.factories import make_user
from tests.other_processes import run, shared_environment


def test_a_token_is_recognised_with_its_user(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    found = tokens.authenticate(secret)
    assert found == token
    assert found.user == alice


def test_the_secret_is_long_and_not_kept(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    assert secret.startswith("bl_")
    assert len(secret) >= 43
    row = ApiToken.objects.filter(pk=token.pk).values().get()
    assert not any(secret[3:] in str(value) for value in row.values())


@pytest.mark.parametrize(
    "wrong",
    ["", "bl_", "x", "bl_" + "a" * 43, "bl_" + "a" * 5000, "bl_\x00" + "a" * 43, "bl_é" + "a" * 43],
)
def test_anything_else_is_not_recognised(alice: User, wrong: str) -> None:
    tokens.create(alice, "laptop", "write")
    assert tokens.authenticate(wrong) is None


def test_a_secret_with_something_around_it_is_not_recognised(alice: User) -> None:
    _, secret = tokens.create(alice, "laptop", "write")
    assert [
        tokens.authenticate(text)
        for text in (secret + "\n", " " + secret, secret[:-1], secret.upper())
    ] == [None] * 4


def test_a_revoked_token_is_refused_and_frees_its_name(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    tokens.revoke(token)
    assert tokens.authenticate(secret) is None
    tokens.create(alice, "laptop", "write")


def test_revoking_again_keeps_the_first_moment(alice: User) -> None:
    token, _ = tokens.create(alice, "laptop", "write")
    tokens.revoke(token)
    first = ApiToken.objects.get(pk=token.pk).revoked_at
    tokens.revoke(ApiToken.objects.get(pk=token.pk))
    assert ApiToken.objects.get(pk=token.pk).revoked_at == first


def test_an_expired_token_is_refused(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write", expires_in_days=1)
    assert tokens.authenticate(secret) == token
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    assert tokens.authenticate(secret) is None


def test_the_token_of_an_inactive_user_is_refused(alice: User) -> None:
    _, secret = tokens.create(alice, "laptop", "write")
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert tokens.authenticate(secret) is None


@pytest.mark.parametrize(
    ("roles", "granted"),
    [
        ([], ["read"]),
        (["viewer"], ["read"]),
        (["contributor"], ["read", "write"]),
        (["admin"], ["read", "write", "admin"]),
    ],
)
def test_a_scope_never_exceeds_the_role(db: None, roles: list[str], granted: list[str]) -> None:
    user = make_user("somebody", *roles)
    for scope in ("read", "write", "admin"):
        if scope in granted:
            tokens.create(user, scope, scope)
        else:
            with pytest.raises(PermissionDenied) as caught:
                tokens.create(user, scope, scope)
            assert caught.value.details["allowed_values"] == granted
    assert ApiToken.objects.count() == len(granted)


def test_a_name_is_used_once_per_user(alice: User, carol: User) -> None:
    tokens.create(alice, "laptop", "write")
    tokens.create(carol, "laptop", "write")
    with pytest.raises(ValidationFailed, match="already has a token named 'laptop'"):
        tokens.create(alice, " laptop ", "read")


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "two\nlines"}, "name"),
        ({"name": "n" * 101}, "name"),
        ({"name": "\x00"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"scope": "root"}, "scope"),
        ({"expires_in_days": 0}, "expires_in_days"),
        ({"expires_in_days": -1}, "expires_in_days"),
        ({"expires_in_days": 10**12}, "expires_in_days"),
        ({"expires_in_days": True}, "expires_in_days"),
    ],
)
def test_bad_values_are_refused_by_name(alice: User, over: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        tokens.create(alice, **{"name": "laptop", "scope": "write"} | over)
    assert caught.value.details["field"] == field
    assert not ApiToken.objects.exists()


def test_checking_costs_one_query_and_notes_the_use_once_a_minute(alice: User) -> None:
    token, secret = tokens.create(alice, "laptop", "write")
    with CaptureQueriesContext(connection) as first:
        tokens.authenticate(secret)
    assert [query["sql"].split()[0] for query in first.captured_queries] == ["SELECT", "UPDATE"]
    noted = ApiToken.objects.get(pk=token.pk).last_used_at
    with CaptureQueriesContext(connection) as second:
        found = tokens.authenticate(secret)
        assert found and found.user.username == "alice"
    assert [query["sql"].split()[0] for query in second.captured_queries] == ["SELECT"]
    ApiToken.objects.filter(pk=token.pk).update(last_used_at=noted - timedelta(seconds=61))
    tokens.authenticate(secret)
    assert ApiToken.objects.get(pk=token.pk).last_used_at > noted - timedelta(seconds=1)


UNDER_A_LONG_WRITE = """
import sqlite3, sys
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from resources_app.identity import tokens

_, secret = tokens.create(User.objects.get(username="alice"), "laptop", "write")
writer = sqlite3.connect(settings.DATABASES["default"]["NAME"], isolation_level=None)
writer.execute("BEGIN IMMEDIATE")
found = tokens.authenticate(secret)
print(found.user.username, found.last_used_at, connection.connection.execute("PRAGMA busy_timeout").fetchone()[0])
"""


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite has one writer at a time")
def test_a_long_write_by_somebody_else_does_not_make_a_check_wait(
    transactional_db: None, django_db_serialized_rollback: None, tmp_path: Path
) -> None:
    make_user("alice", "contributor")
    # A check that waits for the writer would exceed the timeout of `run`.
    environment = shared_environment(tmp_path, BACKLOG_LOCK_SECONDS="600")
    assert run(environment, UNDER_A_LONG_WRITE) == "alice None 600000"
