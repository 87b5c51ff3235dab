"""Test the hook as a runtime starts it: JSON on stdin, an answer on stderr, exit code 2 when it
handled the call.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from bench.tokens import count_tokens
from resources_app.identity import tokens
from resources_app.models import Change, Task
from tests.factories import make_task
from tests.mcp.test_tools import TOOLS

INTEGRATIONS = Path(__file__).resolve().parents[2] / "integrations"
HOOK = INTEGRATIONS / "fs-write-hook/mcp_fs_hook.py"
TEXT = "# Login\n\n- one\n- two\n"

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


@pytest.fixture
def task(alice: User) -> Task:
    return make_task(description=TEXT)


def path_of(task: Task) -> str:
    return f"mcp://backlog/tasks/{task.ref}/description"


def call(url: str, user: User | None, tool: str, **given: Any) -> subprocess.CompletedProcess[str]:
    token = tokens.create(user, f"hook {tool}", "write")[1] if user else ""
    environment = os.environ | {"BACKLOG_URL": url, "BACKLOG_TOKEN": token}
    body = json.dumps({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": given})
    return subprocess.run(
        [sys.executable, HOOK],
        input=body,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def text_of(task: Task) -> str:
    return Task.objects.get(pk=task.pk).description


@pytest.mark.parametrize(
    ("tool", "given", "text"),
    [
        (
            "Edit",
            {"old_string": "- two", "new_string": "- $2 \\1"},
            TEXT.replace("- two", "- $2 \\1"),
        ),
        (
            "Edit",
            {"old_string": "- ", "new_string": "* ", "replace_all": True},
            TEXT.replace("- ", "* "),
        ),
        ("Write", {"content": "New"}, "New"),
        (
            "MultiEdit",
            {
                "edits": [
                    {"old_string": "one", "new_string": "1"},
                    {"old_string": "- 1", "new_string": "- I"},
                ]
            },
            TEXT.replace("one", "I"),
        ),
        (
            "fs_write",
            {"command": "str_replace", "old_str": "one", "new_str": "1"},
            TEXT.replace("one", "1"),
        ),
        ("fs_write", {"command": "append", "new_str": "- three\n"}, TEXT + "- three\n"),
        (
            "fs_write",
            {"command": "insert", "insert_line": 2, "new_str": "- zero\n"},
            TEXT.replace("- one", "- zero\n- one"),
        ),
        ("fs_write", {"command": "create", "file_text": "Whole"}, "Whole"),
    ],
)
def test_an_edit_becomes_one_write(
    live_server: Any, alice: User, task: Task, tool: str, given: dict[str, Any], text: str
) -> None:
    named = "path" if tool == "fs_write" else "file_path"
    done = call(live_server.url, alice, tool, **{named: path_of(task)}, **given)
    assert (done.returncode, text_of(task)) == (2, text), done.stderr
    assert "Written to" in done.stderr and "@@" in done.stderr
    assert Change.objects.filter(kind="task").latest("pk").author == alice


def test_a_path_made_absolute_by_the_runtime_is_understood(
    live_server: Any, alice: User, task: Task
) -> None:
    path = path_of(task).replace("mcp://", "/home/me/project/mcp:/")
    assert (
        call(
            live_server.url, alice, "Edit", file_path=path, old_string="one", new_string="1"
        ).returncode
        == 2
    )
    assert text_of(task) == TEXT.replace("one", "1")


def test_reading_shows_the_text(live_server: Any, alice: User, task: Task) -> None:
    done = call(live_server.url, alice, "Read", file_path=path_of(task))
    assert done.returncode == 2 and done.stderr.endswith(f"{TEXT}\n")


def test_other_files_pass(live_server: Any, alice: User) -> None:
    done = call(
        live_server.url,
        alice,
        "Edit",
        file_path="/home/me/notes.md",
        old_string="a",
        new_string="b",
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_done_is_explained_and_changes_nothing(
    live_server: Any, alice: User, task: Task
) -> None:
    done = call(
        live_server.url, alice, "Edit", file_path=path_of(task), old_string="- tow", new_string="x"
    )
    assert done.returncode == 2 and done.stderr.startswith("Not written. operation_failed")
    assert "- two" in done.stderr
    edits = [{"old_string": "one", "new_string": "1"}, {"old_string": "absent", "new_string": "x"}]
    assert (
        call(live_server.url, alice, "MultiEdit", file_path=path_of(task), edits=edits).returncode
        == 2
    )
    assert text_of(task) == TEXT


def test_without_a_token_or_a_server_it_says_what_to_do(alice: User, task: Task) -> None:
    assert (
        "BACKLOG_TOKEN" in call("http://127.0.0.1:9", None, "Read", file_path=path_of(task)).stderr
    )
    assert (
        "BACKLOG_URL" in call("http://127.0.0.1:9", alice, "Read", file_path=path_of(task)).stderr
    )


def test_the_part_for_agents_names_every_tool_in_few_tokens() -> None:
    text = (INTEGRATIONS / "AGENTS.md").read_text()
    assert all(f"`{tool}`" in text for tool in TOOLS)
    assert count_tokens(text) <= 250
    rules = text[text.index("- Find") :]
    assert rules in (INTEGRATIONS / "skill/SKILL.md").read_text()
    assert count_tokens(rules) <= 200
