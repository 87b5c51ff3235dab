"""Test completions of a word in a text: few, by name and by words, and nothing the writer may not
see.
"""

from urllib.parse import quote

import pytest
from django.contrib.auth.models import User

from resources_app.writing import stored_files
from tests.factories import as_actor, make_epic, make_task
from tests.viewer.browsing import signed_in


@pytest.fixture
def backlog(carol: User) -> None:
    make_epic(title="Thumbnails")
    for number in range(12):
        make_task(title=f"Paginate folder {number}")
    make_task(title="Paginate secretly", groups=["admin"])
    stored_files.create_resource(as_actor(carol), "resources/docs/how to rename.md", "# Renames")
    stored_files.create_resource(as_actor(carol), "resources/plan.md", "# Plan")


def suggested(user: User, typed: str) -> list[str]:
    answer = signed_in(user).get(f"/suggest/?q={quote(typed, safe='')}")
    return [one["text"] for one in answer.json()["suggestions"]]


@pytest.mark.parametrize(
    ("typed", "texts"),
    [
        ("@ca", ["@carol"]),
        ("@stranger", []),
        ("EPIC-", ["EPIC-0001"]),
        ("task-0003", ["TASK-0003"]),
        ("TASK-9", []),
        ("#thumb", ["EPIC-0001"]),
        ("mcp://backlog/r", ["mcp://backlog/resources/"]),
        (
            "mcp://backlog/resources/",
            ["mcp://backlog/resources/docs/", "mcp://backlog/resources/plan.md"],
        ),
        (
            "mcp://backlog/resources/docs/how%20",
            ["mcp://backlog/resources/docs/how%20to%20rename.md"],
        ),
        ("mcp://rename", ["mcp://backlog/resources/docs/how%20to%20rename.md"]),
        ("mcp://backlog/epics/", ["mcp://backlog/epics/EPIC-0001"]),
        ("mcp://backlog/tasks/TASK-0002", ["mcp://backlog/tasks/TASK-0002"]),
        ("ib://logo", []),
        ("hello", []),
        ("", []),
        ("#" * 5000, []),
        ("TASK-٤", []),
    ],
)
def test_a_word_becomes_what_it_may_mean(
    typed: str, texts: list[str], backlog: None, alice: User
) -> None:
    assert suggested(alice, typed) == texts


def test_they_are_few_the_newest_first(backlog: None, alice: User) -> None:
    assert suggested(alice, "TASK-")[:2] == ["TASK-0012", "TASK-0011"]
    assert len(suggested(alice, "TASK-")) == len(suggested(alice, "#paginate")) == 8


def test_what_is_for_others_is_not_suggested(
    backlog: None, alice: User, carol: User, mallory: User
) -> None:
    for typed in ("TASK-0013", "#secretly", "mcp://backlog/tasks/TASK-0013"):
        assert suggested(carol, typed), typed
        assert not suggested(alice, typed), typed
    assert signed_in(mallory).get("/suggest/?q=@").status_code == 403
