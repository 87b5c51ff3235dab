"""Test the demo team: the first run must look like a team at work and be consistent."""

import re
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.demo import fill
from resources_app.history import revisions
from resources_app.history.documents import document_of
from resources_app.identity.roles import is_admin, may_read, may_write
from resources_app.models import Change, Comment, Epic, Resource, Task
from resources_app.vocabulary import Priority, Status
from tests.factories import make_task

REF = re.compile(r"\b(?:TASK|EPIC)-\d{4}\b")
FILE = re.compile(r"mcp://backlog/((?:resources|artifacts)/[^\s)\"'`]+\.\w+)")


@pytest.fixture
def team(db: None) -> None:
    fill.seed("correct horse battery")


def all_texts() -> str:
    items = [
        document_of(item)
        for model in (Task, Epic)
        for item in model.objects.select_related("assignee")
    ]
    return "\n".join(
        map(
            str,
            [
                *items,
                *Comment.objects.values_list("body"),
                *Resource.objects.values_list("content"),
            ],
        )
    )


@pytest.mark.usefixtures("team")
def test_the_team_has_people_of_every_role_with_the_given_password() -> None:
    people = {user.username: user for user in User.objects.all()}
    assert is_admin(people["admin"])
    assert people["admin"].is_staff
    assert may_write(people["alice"])
    assert not is_admin(people["alice"])
    assert may_read(people["bob"])
    assert not may_write(people["bob"])
    assert all(
        user.check_password("correct horse battery") for user in (people["admin"], people["bob"])
    )


@pytest.mark.usefixtures("team")
def test_the_backlog_shows_every_status_priority_and_kind_of_thing() -> None:
    assert Epic.objects.count() == 6
    assert Task.objects.count() == 60
    assert {task.status for task in Task.objects.all()} == set(Status.values)
    assert {task.priority for task in Task.objects.all()} == set(Priority.values)
    assert Task.objects.archived().count() == 3
    assert Task.objects.filter(status=Status.BLOCKED).exclude(blocked_reason=[]).count() == 3
    assert (
        Resource.objects.filter(
            path__startswith="resources/docs/adr/", frontmatter__has_key="title"
        ).count()
        == 8
    )
    assert Resource.objects.filter(path__startswith="artifacts/").count() == 2
    assert Comment.objects.exclude(agent="").exists()


@pytest.mark.usefixtures("team")
def test_what_the_texts_refer_to_exists() -> None:
    text = all_texts()
    known = {item.ref for model in (Task, Epic) for item in model.objects.all()}
    assert set(REF.findall(text)) <= known
    assert set(FILE.findall(text)) <= set(Resource.objects.values_list("path", flat=True))


@pytest.mark.usefixtures("team")
def test_the_history_was_made_by_several_people_and_agents_and_can_be_read_back() -> None:
    assert {via for (via,) in Change.objects.values_list("via")} == {"web", "rest", "mcp"}
    assert Change.objects.values("author").distinct().count() >= 5
    task = Task.objects.get(pk=1)
    assert task.version > 5
    assert "- [x]" in task.description
    assert "- [x]" not in revisions.document_at("task", 1, 1)["description"]


@pytest.mark.usefixtures("team")
def test_restricted_tasks_are_hidden_from_those_outside_the_group() -> None:
    hidden = set(Task.objects.filter(restricted=True).values_list("pk", flat=True))
    assert len(hidden) == 2
    alice, chen = User.objects.get(username="alice"), User.objects.get(username="chen")
    assert hidden <= set(Task.objects.visible_to(alice).values_list("pk", flat=True))
    assert not Task.objects.visible_to(chen).filter(pk__in=hidden).exists()


@pytest.mark.django_db
def test_seed_demo_refuses_a_database_with_tasks_and_adds_to_it_when_forced() -> None:
    mine = make_task(title="Mine")
    with pytest.raises(CommandError, match="There are already 1 tasks"):
        call_command("seed_demo")
    assert Task.objects.count() == 1
    call_command("seed_demo", "--force", stdout=StringIO())
    assert Task.objects.get(pk=mine.pk).title == "Mine"
    first = Task.objects.get(pk=mine.pk + 1)
    assert first.title == "Sign in with OpenID Connect"
    second = Task.objects.get(pk=mine.pk + 2)
    assert second.depends_on == [first.ref]
    assert f"Follows {first.ref};" in second.description


@pytest.mark.django_db
def test_seed_demo_prints_the_password_it_made_and_keeps_existing_accounts() -> None:
    User.objects.create_user("alice", password="her own password")
    printed = StringIO()
    call_command("seed_demo", stdout=printed)
    password = re.search(r"password (\S+)", printed.getvalue())
    assert password
    assert User.objects.get(username="admin").check_password(password[1])
    assert User.objects.get(username="alice").check_password("her own password")
