"""Test `manage.py create_token`: stdout is only the token; an error says what to do and exits with
1.
"""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.identity import tokens
from tests.factories import make_user
from tests.other_processes import ROOT, shared_environment


def create(*arguments: str) -> tuple[str, str]:
    out, err = StringIO(), StringIO()
    call_command("create_token", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_token_alone_is_on_stdout(alice: User) -> None:
    out, err = create("alice", "--name", "laptop", "--scope", "write")
    assert out.count("\n") == 1
    found = tokens.authenticate(out.strip())
    assert found
    assert (found.user, found.name, found.scope, found.expires_at) == (
        alice,
        "laptop",
        "write",
        None,
    )
    assert "until it is revoked" in err
    assert out.strip() not in err


def test_days_until_it_expires_can_be_given(alice: User) -> None:
    out, _ = create("alice", "--name", "laptop", "--scope", "read", "--expires", "7")
    found = tokens.authenticate(out.strip())
    assert found and found.expires_at
    assert (found.expires_at - found.created_at).days in (6, 7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nobody", "--name", "n", "--scope", "read"],
            "There is no user 'nobody'. Known users: alice, bob.",
        ),
        (
            ["alice", "--name", "taken", "--scope", "read"],
            "already has a token named 'taken'. Choose another name",
        ),
        (
            ["bob", "--name", "n", "--scope", "write"],
            "does not reach to the scope 'write'. Use the scope read.",
        ),
        (["alice", "--name", "", "--scope", "read"], "name must be one line"),
        (["alice", "--name", "n", "--scope", "read", "--expires", "0"], "whole number of days"),
        (["alice", "--name", "n", "--scope", "root"], "invalid choice"),
        (
            ["\udcff", "--name", "n", "--scope", "read"],
            "must not contain NUL or unpaired surrogates",
        ),
    ],
)
def test_refusals_say_what_is_wrong(
    alice: User, bob: User, arguments: list[str], message: str
) -> None:
    tokens.create(alice, "taken", "read")
    with pytest.raises(CommandError) as caught:
        create(*arguments)
    assert message in str(caught.value)


def test_from_a_shell_the_token_can_be_taken_and_a_refusal_ends_with_1(
    transactional_db: None, django_db_serialized_rollback: None, tmp_path: Path
) -> None:
    make_user("alice", "contributor")
    environment = shared_environment(tmp_path)

    def shell(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, os.fspath(ROOT / "manage.py"), "create_token", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    made = shell("alice", "--name", "shell", "--scope", "write")
    assert (made.returncode, made.stdout[:3], made.stdout.count("\n")) == (0, "bl_", 1)
    refused = shell("alice", "--name", "shell", "--scope", "write")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("CommandError: alice already has a token named 'shell'.")
