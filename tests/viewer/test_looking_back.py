"""Test activity by kind, and the progress of an epic."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.identity.roles import Actor
from resources_app.models import Change
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, task_uri
from tests.viewer.browsing import fragment, signed_in, text_of


@pytest.fixture
def deeds(carol: User) -> None:
    make_epic(title="An outcome")
    task = make_task(title="A piece of work")
    write_path.add_comment(as_actor(carol), task_uri(task), "Said")
    stored_files.create_resource(as_actor(carol), "resources/notes.md", "# Notes")
    agent = Actor(carol, "mcp", agent="claude-code")
    write_path.write(agent, task_uri(task), {"type": "merge", "value": {"priority": "high"}})


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("type=task", ["A piece of work"], ["An outcome", "commented on", "notes.md"]),
        ("type=epic", ["An outcome"], ["A piece of work", "notes.md"]),
        ("type=comment", ["commented on"], ["created", "notes.md"]),
        ("type=resource", ["notes.md"], ["An outcome", "A piece of work"]),
        ("type=ib", ["Nothing of this kind has happened"], ["An outcome", "notes.md"]),
        ("type=task&source=agents", ["claude-code", "changed priority of"], ["created"]),
        ("type=epic&source=agents", ["Nothing of this kind has happened"], ["An outcome"]),
    ],
)
def test_activity_is_filtered_by_what_it_is_about(
    query: str, shown: list[str], hidden: list[str], deeds: None, alice: User
) -> None:
    for view in ("", "&view=journal"):
        page = text_of(fragment(signed_in(alice), f"/activity/?{query}{view}"))
        assert [words for words in shown if words not in page] == []
        assert [words for words in hidden if words in page] == []


def test_an_unknown_type_is_refused_kindly(alice: User) -> None:
    assert signed_in(alice).get("/activity/?type=weather").status_code == 400


def test_an_epic_shows_how_its_scope_and_what_is_done_grew(alice: User, carol: User) -> None:
    epic = make_epic(title="Whole")
    make_task(title="Of last week", status="done", epic_id=epic.ref)
    Change.objects.update(created_at=timezone.now() - timedelta(days=6))
    assert f"Burn-up of {epic.ref}: 1 of 1 done" in text_of(signed_in(alice).get(f"/t/{epic.ref}/"))
    make_task(title="Open", epic_id=epic.ref)
    make_task(title="Of others", epic_id=epic.ref, groups=["admin"])
    assert f"Burn-up of {epic.ref}: 1 of 2 done" in text_of(signed_in(alice).get(f"/t/{epic.ref}/"))


def test_an_epic_of_today_draws_no_line(alice: User) -> None:
    epic = make_epic(title="New")
    make_task(title="Open", epic_id=epic.ref)
    assert "Burn-up" not in text_of(signed_in(alice).get(f"/t/{epic.ref}/"))
