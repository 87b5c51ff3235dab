"""Test undoing a batch and an agent's run: everything is reverted, or the error names what has
changed since.
"""

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.models import Change, Comment, Resource, Task
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_task, make_user, task_uri

UNDO = "/api/v1/undo/"


def batch_of(client: ApiClient, *operations: tuple[str, dict[str, Any]]) -> str:
    body = {"operations": [{"uri": uri, "operation": operation} for uri, operation in operations]}
    return str(client.post("/api/v1/write_batch/", body).json()["batch"])


def test_a_batch_is_undone_as_a_whole(alice: User) -> None:
    first, second = make_task(title="one", description="a"), make_task(title="two", labels=["x"])
    client = ApiClient(alice)
    batch = batch_of(
        client,
        (task_uri(first, "description"), {"type": "append", "content": "b"}),
        (task_uri(first, "status"), {"type": "set", "value": "done"}),
        (task_uri(second, "labels"), {"type": "array_append", "value": "y"}),
    )
    client.post(
        "/api/v1/write/",
        {"uri": task_uri(second, "title"), "operation": {"type": "set", "value": "kept"}},
    )
    answer = client.post(UNDO, {"batch": batch})
    assert answer.status_code == 200, answer.content
    assert answer.json()["undone"] == 3
    assert (
        Task.objects.get(pk=first.pk).description == "a"
        and Task.objects.get(pk=first.pk).status == 1
    )
    assert (Task.objects.get(pk=second.pk).labels, Task.objects.get(pk=second.pk).title) == (
        ["x"],
        "kept",
    )
    assert Change.objects.latest("pk").action == "undo"
    again = client.post(UNDO, {"batch": answer.json()["batch"]})
    assert again.status_code == 200 and Task.objects.get(pk=first.pk).description == "ab"


def test_what_moved_on_is_named_and_nothing_is_undone(alice: User) -> None:
    task, other = make_task(description="a"), make_task(title="t")
    client = ApiClient(alice)
    batch = batch_of(
        client,
        (task_uri(task, "description"), {"type": "append", "content": "b"}),
        (task_uri(other, "title"), {"type": "set", "value": "u"}),
    )
    append = {"type": "append", "content": "c"}
    client.post("/api/v1/write/", {"uri": task_uri(task, "description"), "operation": append})
    refused = client.post(UNDO, {"batch": batch})
    assert refused.status_code == 409
    assert error_of(refused)["details"]["moved_on"] == [
        {"uri": task_uri(task), "field": "description", "version": 3}
    ]
    assert Task.objects.get(pk=other.pk).title == "u"


def test_an_agents_run_is_undone_and_what_it_created_is_archived(alice: User) -> None:
    task = make_task(title="before")
    client, person = ApiClient(alice), ApiClient(alice)
    since = timezone.now().isoformat()
    created = client.post("/api/v1/tasks/", {"title": "made by the agent"}).json()
    client.patch(f"/api/v1/tasks/{task.ref}/", {"title": "after"})
    agent = Change.objects.latest("pk").agent
    assert person.post(UNDO, {"agent": agent, "since": since}).status_code == 200
    assert Task.objects.get(pk=task.pk).title == "before"
    assert person.get(f"/api/v1/tasks/{created['id']}/").json()["archived_at"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"batch": "nonsense"}, 400),
        ({"batch": None}, 400),
        ({"batch": "00000000-0000-0000-0000-000000000000"}, 404),
        ({}, 400),
        ({"agent": "x", "since": "yesterday"}, 400),
        ({"agent": "nobody", "since": "2026-01-01T00:00:00Z"}, 404),
    ],
)
def test_bad_requests_are_refused(alice: User, body: dict[str, Any], status: int) -> None:
    response = ApiClient(alice).post(UNDO, body)
    assert response.status_code == status
    error_of(response)


def test_a_reader_does_not_undo(alice: User, bob: User) -> None:
    task = make_task(title="a")
    batch = batch_of(ApiClient(alice), (task_uri(task, "title"), {"type": "set", "value": "b"}))
    assert ApiClient(bob).post(UNDO, {"batch": batch}).status_code == 403


def test_a_batch_one_may_not_see_cannot_be_told_from_one_that_is_not_there(
    alice: User, carol: User
) -> None:
    hidden, seen = make_task(title="a", groups=["admin"]), make_task(title="a")
    to_b = {"type": "set", "value": "b"}
    batch = batch_of(ApiClient(carol), (task_uri(hidden, "title"), to_b))
    answers = [ApiClient(alice).post(UNDO, {"batch": one}) for one in (batch, str(uuid.uuid4()))]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    mixed = batch_of(
        ApiClient(carol), (task_uri(hidden, "title"), to_b), (task_uri(seen, "title"), to_b)
    )
    answer = ApiClient(alice).post(UNDO, {"batch": mixed}).json()
    assert (answer["undone"], answer["things"]) == (1, [task_uri(seen)])
    assert [Task.objects.get(pk=task.pk).title for task in (hidden, seen)] == ["b", "a"]


def test_what_somebody_said_is_taken_back_by_themselves_or_an_admin(
    alice: User, carol: User
) -> None:
    dave = make_user("dave", "contributor")
    comment = write_path.add_comment(as_actor(dave), task_uri(make_task()), "as it was")
    reword = (f"mcp://backlog/comments/{comment.pk}", {"type": "set", "value": "as it is"})
    batch = batch_of(ApiClient(dave), reword)
    assert ApiClient(alice).post(UNDO, {"batch": batch}).status_code == 403
    assert Comment.objects.get(pk=comment.pk).body == "as it is"
    assert ApiClient(carol).post(UNDO, {"batch": batch}).status_code == 200
    assert Comment.objects.get(pk=comment.pk).body == "as it was"


def test_a_mirrored_file_is_not_undone_here(alice: User) -> None:
    file = stored_files.create_resource(as_actor(alice), "resources/a.md", "one")
    batch = batch_of(
        ApiClient(alice), ("mcp://backlog/resources/a.md", {"type": "append", "content": " two"})
    )
    Resource.objects.filter(pk=file.pk).update(root="docs")
    assert ApiClient(alice).post(UNDO, {"batch": batch}).status_code == 403
    assert Resource.objects.get(pk=file.pk).content == "one two"


def test_undoing_limits_nothing_to_a_group_one_is_not_in(alice: User, carol: User) -> None:
    task = make_task(groups=["admin"])
    batch = batch_of(ApiClient(carol), (task_uri(task, "groups"), {"type": "set", "value": []}))
    assert ApiClient(alice).post(UNDO, {"batch": batch}).status_code == 403
    assert ApiClient(alice).get(f"/api/v1/tasks/{task.ref}/").status_code == 200
    assert ApiClient(carol).post(UNDO, {"batch": batch}).status_code == 200
    assert ApiClient(alice).get(f"/api/v1/tasks/{task.ref}/").status_code == 404
