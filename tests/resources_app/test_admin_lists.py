"""Test that lists read one page, and find what is searched."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from resources_app.admin.base import MAX_COUNTED, BoundedPaginator
from resources_app.models import Folder, Job, Resource, Task
from resources_app.writing import write_path
from tests.factories import make_epic, make_task, system, task_uri
from tests.resources_app.admin_client import enter, url

pytestmark = pytest.mark.django_db


def listed(client: Client, page: str, **query: Any) -> list[Any]:
    answer = client.get(url(page), query)
    assert answer.status_code == 200
    return list(answer.context["cl"].result_list)


def count_queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as queries:
        assert client.get(address).status_code == 200
    return len(queries)


def fill(user: User, start: int, end: int) -> None:
    """Create rows of every kind, each with its own epic, users and comment, so that a query per row
    would show.
    """
    for number in range(start, end):
        epic = make_epic(title=f"Epic {number}", assignee=user.username)
        task = make_task(
            title=f"Task {number}", epic_id=epic.ref, assignee=user.username, labels=["a"]
        )
        write_path.add_comment(system(), task_uri(task), "Hello")
        folder = Folder.objects.create(path=f"resources/{number}")
        Resource.objects.create(
            path=f"resources/{number}/a.md",
            folder=folder,
            mime_type="text/markdown",
            size=1,
            sha256="0" * 64,
            content="x",
            created_at=timezone.now(),
            updated_at=timezone.now(),
        ).ancestors.add(folder)
        Job.objects.create(
            kind="sync", key=str(number), run_at=timezone.now(), created_at=timezone.now()
        )


PAGES = ["task", "epic", "comment", "resource", "folder", "change", "revision", "job"]


def test_every_list_takes_the_same_queries_for_two_rows_as_for_thirty(alice: User) -> None:
    client = enter()
    addresses = [url(f"{page}_changelist") for page in PAGES]
    fill(alice, 0, 2)
    few = [count_queries(client, address) for address in addresses]
    fill(alice, 2, 30)
    many = [count_queries(client, address) for address in addresses]
    assert few == many
    assert max(many) <= 8


def test_a_list_shows_one_small_page_and_says_how_many_there_are() -> None:
    for _ in range(51):
        make_task()
    answer = enter().get(url("task_changelist"))
    assert len(answer.context["cl"].result_list) == 25
    assert len(answer.content) <= 250_000
    assert "51 tasks" in " ".join(answer.content.decode().split())


def test_counting_stops_where_nobody_pages_any_more() -> None:
    make_task()
    with CaptureQueriesContext(connection) as queries:
        assert BoundedPaginator(Task.objects.order_by("pk"), 50).count == 1
    assert f"LIMIT {MAX_COUNTED}" in queries[0]["sql"]


def test_a_task_is_found_by_its_id_however_it_is_written_or_by_its_title() -> None:
    task, other = make_task(title="Render the 0002 charts"), make_task(title="Other")
    client = enter()
    for words in ("TASK-0001", "task-1", "0001", " 1 "):
        assert listed(client, "task_changelist", q=words) == [task]
    assert listed(client, "task_changelist", q="charts render") == [task]
    assert listed(client, "task_changelist", q="TASK-0002") == [other]
    assert listed(client, "task_changelist", q="nothing like it") == []


def test_the_filters_narrow_the_list(alice: User) -> None:
    epic = make_epic()
    wanted = make_task(
        status="done", priority="high", epic_id=epic.ref, assignee="alice", labels=["red"]
    )
    make_task(labels=["blue"])
    client = enter()
    for query in (
        {"status__exact": "4"},
        {"priority__exact": "3"},
        {"epic__number__exact": str(epic.pk)},
        {"assignee__id__exact": str(alice.pk)},
        {"label": "red"},
    ):
        assert listed(client, "task_changelist", **query) == [wanted]


def test_what_is_archived_shows_only_when_asked_for() -> None:
    live, archived = make_task(), make_task()
    write_path.archive(system(), task_uri(archived))
    client = enter()
    assert listed(client, "task_changelist") == [live]
    assert listed(client, "task_changelist", archived="yes") == [archived]
    assert len(listed(client, "task_changelist", archived="all")) == 2


def test_a_nonsense_filter_or_page_is_no_server_error() -> None:
    make_task()
    client = enter()
    for query in (
        {"status__exact": "x"},
        {"epic__number__exact": "x"},
        {"p": "x"},
        {"p": "99"},
        {"unknown": "1"},
    ):
        assert client.get(url("task_changelist"), query).status_code in (200, 302)


def test_the_list_leaves_long_texts_in_the_database() -> None:
    make_task(description="long " * 100)
    client = enter()
    with CaptureQueriesContext(connection) as queries:
        client.get(url("task_changelist"))
    assert not [query for query in queries if '"description"' in query["sql"]]


def test_the_audit_trail_is_found_by_id() -> None:
    make_task()
    task = make_task()
    write_path.archive(system(), task_uri(task))
    found = listed(enter(), "change_changelist", q="task-0002")
    assert [(change.ref, change.action) for change in found] == [
        ("TASK-0002", "archive"),
        ("TASK-0002", "create"),
    ]


def test_the_audit_trail_keeps_what_is_gone() -> None:
    task = make_task()
    write_path.delete_permanently(system(), task_uri(task))
    assert [change.action for change in listed(enter(), "change_changelist")] == [
        "delete",
        "create",
    ]


def test_autocomplete_offers_live_epics_by_title_and_id() -> None:
    epic, gone = make_epic(title="Search"), make_epic(title="Search of old")
    write_path.archive(system(), f"mcp://backlog/epics/{gone.ref}")
    client = enter()
    for words in ("sear", "EPIC-0001"):
        query = {
            "app_label": "resources_app",
            "model_name": "task",
            "field_name": "epic",
            "term": words,
        }
        offered = client.get("/admin/autocomplete/", query).json()["results"]
        assert [row["id"] for row in offered] == [str(epic.pk)]


def test_the_dashboard_counts_live_tasks_and_shows_the_latest_changes_and_failures(
    alice: User,
) -> None:
    make_task(), make_task(status="done")
    write_path.archive(system(), task_uri(make_task()))
    job = {"key": "k", "run_at": timezone.now(), "created_at": timezone.now()}
    Job.objects.create(kind="sync", state="failed", attempts=3, last_error="It broke", **job)
    answer = enter().get("/admin/")
    counts = {row["title"]: row["count"] for row in answer.context["statuses"]}
    assert counts == {"open": 1, "in progress": 0, "blocked": 0, "done": 1, "cancelled": 0}
    assert [row["change"].action for row in answer.context["changes"]] == [
        "archive",
        "create",
        "create",
        "create",
    ]
    assert "It broke" in answer.content.decode()


def test_the_dashboard_takes_the_same_queries_for_two_tasks_as_for_thirty(alice: User) -> None:
    client = enter()
    fill(alice, 0, 12)
    few = count_queries(client, "/admin/")
    fill(alice, 12, 30)
    assert count_queries(client, "/admin/") == few


def test_the_search_box_jumps_to_a_task_by_its_id() -> None:
    task = make_task(title="Jump here")
    shown = enter().get("/admin/search/", {"s": "task-0001", "extended": "1"}).content.decode()
    assert "Jump here" in shown
    assert url("task_change", task.pk) in shown


def test_a_failed_job_is_retried_and_another_is_not() -> None:
    when = {"run_at": timezone.now(), "created_at": timezone.now()}
    failed = Job.objects.create(kind="sync", key="a", state="failed", last_error="It broke", **when)
    done = Job.objects.create(kind="sync", key="b", state="done", **when)
    posted = {"action": "retry", "_selected_action": [failed.pk, done.pk]}
    shown = enter().post(url("job_changelist"), posted, follow=True).content.decode()
    waiting = Job.objects.get(state="pending")
    assert (waiting.key, waiting.kind) == ("a", "sync")
    assert f"Job {failed.pk} is tried again as job {waiting.pk}." in shown
    assert f"Job {done.pk} is done; only a failed one can be retried." in shown
