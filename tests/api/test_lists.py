"""Test lists: which fields they give and load, and when their ETag changes."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from resources_app.models import Task
from resources_app.writing import write_path
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_epic, make_task, make_user, system, task_uri

pytestmark = pytest.mark.django_db

TASKS = "/api/v1/tasks/"
TEXTS = ("description", "evidence", "blocked_reason", "references")


def read(user: User, query: str = "", path: str = TASKS) -> Any:
    response = ApiClient(user).get(f"{path}?{query}")
    assert response.status_code == 200, response.json()
    return response.json()


def etag(user: User, query: str = "", path: str = TASKS) -> str:
    return ApiClient(user).get(f"{path}?{query}")["ETag"]


def write(task: Task, field: str, value: Any) -> None:
    write_path.write(system(), task_uri(task, field), {"type": "set", "value": value})


@pytest.mark.parametrize(("path", "make"), [(TASKS, make_task), ("/api/v1/epics/", make_epic)])
def test_every_field_of_a_list_can_be_selected_and_only_those_come(
    bob: User, path: str, make: Callable[..., Any]
) -> None:
    make(description="a text", labels=["one"])
    [whole] = read(bob, path=path)["results"]
    assert whole["description"] == "a text", "lists carry texts unless fields leaves them out"
    names = list(whole)
    assert read(bob, f"fields={','.join(names)}", path)["results"] == [whole]
    for name in names:
        assert read(bob, f"fields={name}", path)["results"] == [{name: whole[name]}]


@pytest.mark.parametrize(
    ("query", "field"),
    [("fields=colour", "fields"), ("fields=", "fields"), ("fields=id&aggregate=count", "fields")],
)
def test_an_unknown_field_is_refused_with_the_valid_ones(bob: User, query: str, field: str) -> None:
    response = ApiClient(bob).get(f"{TASKS}?{query}")
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "validation_failed")
    assert error["details"]["field"] == field
    if "aggregate" not in query:
        assert {"id", "title", "parent_id", "description"} <= set(
            error["details"]["allowed_values"]
        )


def test_fields_select_in_the_archive_and_in_an_epic(alice: User) -> None:
    epic = make_epic()
    task, gone = make_task(epic_id=epic.ref), make_task()
    write_path.archive(as_actor(alice), task_uri(gone))
    inside = read(alice, "fields=id", f"/api/v1/epics/{epic.ref}/tasks/")
    assert inside["results"] == [{"id": task.ref}]
    [archived] = (
        ApiClient(alice)
        .get("/api/v1/resource/?uri=mcp://backlog/archive?fields=id")
        .json()["contents"]["results"]
    )
    assert archived == {"id": gone.ref}


def loaded(run: Callable[[], Any]) -> set[str]:
    """Return which texts the statements read."""
    with CaptureQueriesContext(connection) as captured:
        run()
    sql = "\n".join(query["sql"] for query in captured)
    return {name for name in TEXTS if f'"{name}"' in sql}


def test_texts_that_are_left_out_are_not_loaded(bob: User) -> None:
    make_task(description="x" * 60_000)
    make_task(description="a text")
    assert loaded(lambda: read(bob)) == set(TEXTS)
    assert loaded(lambda: read(bob, "fields=id,title,status")) == set()
    assert loaded(lambda: read(bob, "fields=id,evidence&status=open")) == {"evidence"}
    assert loaded(lambda: read(bob, "fields=id&ready=true")) == set()


@pytest.mark.parametrize("kind", ["task", "epic"])
def test_a_list_of_an_agent_loads_no_texts_and_costs_the_same_for_long_ones(
    bob: User, kind: str
) -> None:
    make = make_task if kind == "task" else make_epic
    long, short = make(description="x" * 60_000, priority="high"), make(description="a text")

    def call() -> Any:
        with acting_as(as_actor(bob)):
            return BacklogTools.backlog_list(None, type=kind)  # type: ignore[arg-type]

    assert loaded(call) == set()
    lines = call()["results"]
    assert [line["id"] for line in lines] == [short.ref, long.ref]
    assert set(lines[1]) == {"id", "title", "status", "priority", "updated_at"}


def test_a_page_keeps_its_etag_while_nothing_changes(bob: User) -> None:
    make_task()
    first = etag(bob)
    assert etag(bob) == first
    assert ApiClient(bob).get(TASKS, If_None_Match=first).status_code == 304


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", "Another"),
        ("description", "another"),
        ("status", "blocked"),
        ("priority", "high"),
        ("labels", ["one"]),
        ("assignee", "alice"),
        ("due_date", "2026-01-01"),
        ("depends_on", ["TASK-0001"]),
        ("epic_id", "EPIC-0001"),
        ("evidence", ["seen"]),
        ("blocked_reason", ["why"]),
        ("references", [{"url": "https://example.org", "title": "x"}]),
    ],
)
def test_a_write_to_any_field_gives_the_page_another_etag(
    alice: User, bob: User, field: str, value: Any
) -> None:
    make_epic()
    make_task()
    task = make_task()
    before = etag(bob)
    write(task, field, value)
    assert etag(bob) != before


def rename(bob: User) -> None:
    User.objects.filter(username="dora").update(username="theodora")


def delete_assignee(bob: User) -> None:
    User.objects.get(username="dora").delete()


def hide_epic(bob: User) -> None:
    Group.objects.get_or_create(name="secret")
    write_path.write(system(), "mcp://backlog/epics/EPIC-0001/groups", _set(["secret"]))


def hide_dependency(bob: User) -> None:
    Group.objects.get_or_create(name="secret")
    write_path.write(system(), "mcp://backlog/tasks/TASK-0001/groups", _set(["secret"]))


def add_elsewhere(bob: User) -> None:
    make_task(status="open")


def archive_elsewhere(bob: User) -> None:
    write_path.archive(system(), "mcp://backlog/tasks/TASK-0003")


def _set(value: Any) -> dict[str, Any]:
    return {"type": "set", "value": value}


@pytest.mark.parametrize(
    ("change", "query"),
    [
        (rename, "id=TASK-0002"),
        (delete_assignee, "id=TASK-0002"),
        (hide_epic, "id=TASK-0002"),
        (hide_epic, "id=TASK-0002&fields=parent_id"),
        (hide_dependency, "id=TASK-0002"),
        (hide_dependency, "id=TASK-0002&fields=depends_on"),
        (add_elsewhere, "limit=1&sort=id"),
        (archive_elsewhere, "limit=1&sort=id"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_page_gets_another_etag_when_its_content_changes_beside_its_items(
    bob: User, change: Callable[[User], None], query: str
) -> None:
    make_user("dora", "contributor")
    make_epic()
    make_task()
    make_task(epic_id="EPIC-0001", depends_on=["TASK-0001"], assignee="dora")
    make_task()
    contents, before = read(bob, query), etag(bob, query)
    change(bob)
    assert read(bob, query) != contents
    assert etag(bob, query) != before


def test_a_page_gets_another_etag_when_more_becomes_visible(bob: User) -> None:
    group = Group.objects.create(name="secret")
    make_epic(groups=["secret"])
    make_task(epic_id="EPIC-0001")
    contents, before = read(bob), etag(bob)
    assert contents["results"][0]["epic_id"] == "hidden"
    bob.groups.add(group)
    bob = User.objects.get(pk=bob.pk)
    assert read(bob)["results"][0]["epic_id"] == "EPIC-0001"
    assert etag(bob) != before


def test_pages_with_other_fields_or_another_continuation_have_other_etags(bob: User) -> None:
    make_task()
    make_task()
    queries = ["", "fields=id", "fields=id,title", "limit=1", "limit=1&sort=id"]
    assert len({etag(bob, query) for query in queries}) == len(queries)
