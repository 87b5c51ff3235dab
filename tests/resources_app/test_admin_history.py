"""Test the history of an object in the admin, and restoring versions."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, system, task_uri
from tests.resources_app.admin_client import enter, make_admin, opened, url

pytestmark = pytest.mark.django_db


def rename(task: Task, title: str, user: User | None = None) -> None:
    actor = as_actor(user, "mcp", agent="claude-code") if user else system()
    write_path.write(actor, task_uri(task, "title"), {"type": "set", "value": title})


def test_the_history_shows_who_changed_what_through_which_door(alice: User) -> None:
    task = make_task(title="First name")
    rename(task, "Second name", alice)
    shown = enter().get(url("task_history", task.pk)).content.decode()
    for expected in (
        "Version 2",
        "Version 1",
        "alice",
        "claude-code",
        "mcp",
        "First name",
        "Second name",
    ):
        assert expected in shown


def test_hostile_text_is_escaped_in_the_history_and_in_the_lists() -> None:
    task = make_task(
        title="<script>alert(1)</script>", description="<b>\n<script>alert(2)</script>"
    )
    client = enter()
    for page in (
        url("task_history", task.pk),
        url("task_changelist"),
        url("change_changelist"),
        "/admin/",
    ):
        shown = client.get(page).content.decode()
        assert "<script>alert" not in shown


def test_an_older_version_is_restored_as_a_new_one() -> None:
    carol, task = make_admin(), make_task(title="Good")
    rename(task, "Bad")
    client = enter(carol)
    etag = client.get(url("task_history", task.pk)).context["etag"]
    answer = client.post(url("task_restore", task.pk, 1), {"etag": etag}, follow=True)
    assert "is as it was in version 1" in answer.content.decode()
    task.refresh_from_db()
    assert (task.title, task.version) == ("Good", 3)
    change = Change.objects.get(version=3)
    assert (change.author, change.via, change.operation) == (
        carol,
        "admin",
        {"type": "restore", "version": 1},
    )


def test_a_restore_from_a_stale_page_is_refused() -> None:
    task = make_task(title="Good")
    rename(task, "Bad")
    client = enter()
    etag = client.get(url("task_history", task.pk)).context["etag"]
    rename(task, "Newest")
    answer = client.post(url("task_restore", task.pk, 1), {"etag": etag}, follow=True)
    assert "Nothing was restored." in answer.content.decode()
    task.refresh_from_db()
    assert task.title == "Newest"


def test_restoring_takes_a_post_and_an_existing_version() -> None:
    task = make_task()
    client = enter()
    assert client.get(url("task_restore", task.pk, 1)).status_code == 405
    etag = client.get(url("task_history", task.pk)).context["etag"]
    answer = client.post(url("task_restore", task.pk, 99), {"etag": etag}, follow=True)
    assert "There is no version 99" in answer.content.decode()


def test_an_archived_thing_offers_no_restore() -> None:
    task = make_task()
    rename(task, "Second")
    write_path.archive(system(), task_uri(task))
    assert "Restore this version" not in enter().get(url("task_history", task.pk)).content.decode()


def test_a_comment_has_a_history_and_goes_back_in_it() -> None:
    comment = write_path.add_comment(system(), task_uri(make_task()), "First")
    client = enter()
    client.post(
        url("comment_change", comment.pk),
        opened(client, "comment_change", comment.pk) | {"body": "Second"},
    )
    page = client.get(url("comment_history", comment.pk))
    assert "Second" in page.content.decode()
    client.post(url("comment_restore", comment.pk, 1), {"etag": page.context["etag"]})
    comment.refresh_from_db()
    assert (comment.body, comment.version) == ("First", 3)


def test_a_long_history_comes_in_pages_of_fifty() -> None:
    task = make_task(title="t1")
    for number in range(2, 61):
        rename(task, f"t{number}")
    client = enter()
    first = client.get(url("task_history", task.pk)).context["page"]
    assert [entry.version for entry in first.entries] == list(range(60, 10, -1))
    second = client.get(url("task_history", task.pk), {"before": first.older}).context["page"]
    assert [entry.version for entry in second.entries] == list(range(10, 0, -1))
    assert client.get(url("task_history", task.pk), {"before": "nonsense"}).status_code == 404


def test_the_history_takes_the_same_queries_however_long_it_is() -> None:
    short, long = make_task(), make_task()
    rename(short, "b")
    rename(short, "c")
    for number in range(60):
        rename(long, f"t{number}")
    client = enter()
    counts = []
    for task in (short, long):
        with CaptureQueriesContext(connection) as queries:
            client.get(url("task_history", task.pk))
        counts.append(len(queries))
    assert counts[0] == counts[1]
