"""Test REST for tasks and epics, as alice (writer), bob (reader), carol (admin) and mallory, who
sees nothing.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.models import Change, Task
from tests.api.clients import ApiClient, error_of
from tests.factories import make_epic, make_task, make_user

TASKS = "/api/v1/tasks/"


def test_a_created_task_answers_with_all_its_fields_and_where_it_is(alice: User) -> None:
    epic = make_epic()
    response = ApiClient(alice).post(
        TASKS,
        {
            "title": "Write it",
            "description": "# Why",
            "labels": ["a"],
            "epic_id": epic.ref,
            "priority": "high",
        },
    )
    assert response.status_code == 201
    assert response["Location"] == "/api/v1/tasks/TASK-0001/"
    task = response.json()
    assert response["ETag"] == f'"{task["etag"]}"'
    expected = {
        "id": "TASK-0001",
        "type": "task",
        "status": "open",
        "priority": "high",
        "epic_id": epic.ref,
    }
    assert expected.items() <= task.items()
    assert (task["parent_id"], task["labels"], task["version"]) == (epic.ref, ["a"], 1)


def test_parent_id_is_the_epic_too(alice: User) -> None:
    epic = make_epic()
    assert (
        ApiClient(alice).post(TASKS, {"title": "x", "parent_id": epic.ref}).json()["epic_id"]
        == epic.ref
    )


def test_a_patch_changes_what_it_names_and_only_that(alice: User) -> None:
    task = make_task(title="old", description="kept")
    response = ApiClient(alice).patch(f"{TASKS}{task.ref}/", {"title": "new", "status": "done"})
    assert response.status_code == 200
    changed = response.json()
    assert (changed["title"], changed["status"], changed["description"]) == ("new", "done", "kept")
    assert changed["version"] == 2
    change = Change.objects.latest("pk")
    assert (change.author, change.via) == (alice, "rest")
    assert change.agent.startswith("agent ")


def test_a_stale_etag_is_a_conflict_and_changes_nothing(alice: User) -> None:
    task = make_task(title="first")
    client = ApiClient(alice)
    etag = client.get(f"{TASKS}{task.ref}/")["ETag"]
    client.patch(f"{TASKS}{task.ref}/", {"title": "second"}, If_Match=etag)
    response = client.patch(f"{TASKS}{task.ref}/", {"title": "third"}, If_Match=etag)
    assert response.status_code == 409
    error = error_of(response)
    assert error["code"] == "conflict"
    assert error["details"]["current_etag"] == client.get(f"{TASKS}{task.ref}/").json()["etag"]
    assert "+second" in error["details"]["diff"]["title"]
    assert Task.objects.get().title == "second"


def test_an_unchanged_task_is_not_sent_again(bob: User) -> None:
    task = make_task()
    client = ApiClient(bob)
    etag = client.get(f"{TASKS}{task.ref}/")["ETag"]
    response = client.get(f"{TASKS}{task.ref}/", If_None_Match=etag)
    assert (response.status_code, response.content) == (304, b"")


def test_delete_archives_and_unarchive_brings_back(alice: User) -> None:
    task = make_task()
    client = ApiClient(alice)
    assert client.delete(f"{TASKS}{task.ref}/").status_code == 204
    assert client.get(TASKS).json()["total"] == 0
    refused = client.patch(f"{TASKS}{task.ref}/", {"title": "x"})
    assert (refused.status_code, error_of(refused)["code"]) == (403, "permission_denied")
    assert client.post(f"{TASKS}{task.ref}/unarchive/", {}).status_code == 200
    assert client.get(TASKS).json()["total"] == 1


def test_only_admins_delete_for_good(alice: User, carol: User) -> None:
    task = make_task()
    assert ApiClient(alice).delete(f"{TASKS}{task.ref}/?permanent=true").status_code == 403
    assert ApiClient(carol).delete(f"{TASKS}{task.ref}/?permanent=true").status_code == 204
    assert not Task.objects.exists()
    assert ApiClient(carol).post(TASKS, {"title": "next"}).json()["id"] == "TASK-0002"


def test_an_unknown_id_is_not_deleted_as_if_it_were_there(alice: User) -> None:
    assert ApiClient(alice).delete(f"{TASKS}TASK-0404/").status_code == 404


def test_a_repeated_create_with_the_same_key_makes_one_task(alice: User) -> None:
    client = ApiClient(alice)
    first = client.post(TASKS, {"title": "once"}, Idempotency_Key="k1")
    again = client.post(TASKS, {"title": "once"}, Idempotency_Key="k1")
    assert first.json() == again.json()
    assert Task.objects.count() == 1
    other = client.post(TASKS, {"title": "another"}, Idempotency_Key="k1")
    assert (other.status_code, error_of(other)["code"]) == (400, "validation_failed")


def test_readers_read_and_do_not_write(bob: User) -> None:
    task = make_task()
    client = ApiClient(bob)
    assert client.get(f"{TASKS}{task.ref}/").status_code == 200
    for response in (
        client.post(TASKS, {"title": "x"}),
        client.patch(f"{TASKS}{task.ref}/", {"title": "x"}),
        client.delete(f"{TASKS}{task.ref}/"),
    ):
        assert (response.status_code, error_of(response)["code"]) == (403, "permission_denied")


def test_a_read_token_of_a_writer_does_not_write(alice: User) -> None:
    response = ApiClient(alice, scope="read").post(TASKS, {"title": "x"})
    assert (response.status_code, error_of(response)["code"]) == (403, "permission_denied")


def test_mallory_cannot_tell_what_exists(mallory: User) -> None:
    task = make_task()
    client = ApiClient()
    client._client.force_login(mallory)
    there, absent = client.get(f"{TASKS}{task.ref}/"), client.get(f"{TASKS}TASK-9999/")
    assert there.status_code == absent.status_code == 404
    assert error_of(there)["code"] == error_of(absent)["code"] == "not_found"
    assert client.get(TASKS).status_code == 404


def test_restricted_tasks_are_for_their_group(bob: User) -> None:
    dora = make_user("dora", "viewer", "security")
    task = make_task(title="secret", groups=["security"])
    assert ApiClient(bob).get(f"{TASKS}{task.ref}/").status_code == 404
    assert ApiClient(dora).get(f"{TASKS}{task.ref}/").status_code == 200
    assert ApiClient(bob).get(TASKS).json()["total"] == 0


def test_nobody_without_credentials(db: None) -> None:
    response = ApiClient().get(TASKS)
    assert (response.status_code, error_of(response)["code"]) == (401, "unauthenticated")
    assert response["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"title": ["x"]}, "title"),
        ({"title": "x", "status": "opened"}, "status"),
        ({"title": "x", "priority": 3}, "priority"),
        ({"title": "x", "epic_id": "EPIC-0404"}, "epic_id"),
        ({"title": "x", "parent_id": "TASK-0001"}, "parent_id"),
        ({"title": "x", "assignee": "nobody"}, "assignee"),
        ({"title": "x", "due_date": "tomorrow"}, "due_date"),
        ({"title": "x", "labels": "a"}, "labels"),
        ({"title": "x", "labels": [1]}, "labels"),
        ({"title": "x", "depends_on": ["TASK-0404"]}, "depends_on"),
        ({"title": "x", "references": [{"title": "no url"}]}, "references"),
        ({"title": "x", "references": [{"url": "javascript:alert(1)"}]}, "references"),
        ({"title": "x", "groups": ["nowhere"]}, "groups"),
        ({"title": "x", "colour": "red"}, "colour"),
        ({"title": "a\x00b"}, None),
        ([], "body"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(alice: User, body: Any, field: str | None) -> None:
    response = ApiClient(alice).post(TASKS, body)
    assert response.status_code == 400, response.content
    error = error_of(response)
    assert error["code"] == "validation_failed"
    assert field is None or error["details"]["field"] == field
    assert not Task.objects.exists() and not Change.objects.exists()


@pytest.mark.parametrize("field", ["id", "type", "created_at", "updated_at", "version", "etag"])
def test_protected_fields_stay_as_they_are(alice: User, field: str) -> None:
    task = make_task()
    response = ApiClient(alice).patch(f"{TASKS}{task.ref}/", {field: "x"})
    assert (response.status_code, error_of(response)["code"]) == (403, "permission_denied")


def test_a_cycle_of_dependencies_is_refused(alice: User) -> None:
    first = make_task()
    second = make_task(depends_on=[first.ref])
    response = ApiClient(alice).patch(f"{TASKS}{first.ref}/", {"depends_on": [second.ref]})
    assert (response.status_code, error_of(response)["details"]["field"]) == (400, "depends_on")
    assert Task.objects.get(pk=first.pk).depends_on == []


@pytest.mark.parametrize(
    "ref",
    ["TASK-1", "task-0001", "EPIC-0001", "TASK-0001x", "..", "%2e%2e", "TASK-0001%2Fx", "%00"],
)
def test_an_id_that_is_none_of_ours_is_an_error_not_a_crash(bob: User, ref: str) -> None:
    make_task()
    assert ApiClient(bob).get(f"{TASKS}{ref}/").status_code in (400, 404)


def test_a_task_reads_as_it_was(alice: User) -> None:
    task = make_task(title="first")
    client = ApiClient(alice)
    client.patch(f"{TASKS}{task.ref}/", {"title": "second"})
    assert client.get(f"{TASKS}{task.ref}/?version=1").json()["title"] == "first"
    assert client.get(f"{TASKS}{task.ref}/?version=9").status_code == 404


def test_lists_page_by_cursor_and_by_offset(bob: User) -> None:
    for number in range(7):
        make_task(title=f"t{number}")
    client = ApiClient(bob)
    first = client.get(f"{TASKS}?limit=3&sort=id").json()
    assert [task["id"] for task in first["results"]] == ["TASK-0001", "TASK-0002", "TASK-0003"]
    second = client.get(f"{TASKS}?limit=3&sort=id&cursor={first['next_cursor']}").json()
    assert [task["id"] for task in second["results"]] == ["TASK-0004", "TASK-0005", "TASK-0006"]
    assert client.get(f"{TASKS}?limit=3&sort=id&offset=6").json()["results"][0]["id"] == "TASK-0007"
    assert (
        first["total"],
        client.get(f"{TASKS}?limit=3&sort=id&offset=6").json()["next_cursor"],
    ) == (7, None)


def test_an_unknown_parameter_lists_the_known_ones(bob: User) -> None:
    error = error_of(ApiClient(bob).get(f"{TASKS}?colour=red"))
    assert error["code"] == "validation_failed"
    assert "status" in error["details"]["allowed_values"]


def test_a_list_costs_the_same_queries_for_one_task_and_for_fifty(
    bob: User, django_assert_num_queries: Any, django_assert_max_num_queries: Any
) -> None:
    client = ApiClient(bob)
    for _ in range(50):
        make_task(assignee="bob", labels=["x"], epic_id=None)
    client.get(TASKS)
    with django_assert_max_num_queries(5):  # token, its last use, groups, page, count
        assert len(client.get(f"{TASKS}?limit=50").json()["results"]) == 50


def test_an_epic_lists_its_tasks(bob: User) -> None:
    epic, other = make_epic(), make_epic()
    make_task(title="in", epic_id=epic.ref)
    make_task(title="out", epic_id=other.ref)
    page = ApiClient(bob).get(f"/api/v1/epics/{epic.ref}/tasks/").json()
    assert [task["title"] for task in page["results"]] == ["in"]
    assert ApiClient(bob).get("/api/v1/epics/EPIC-0404/tasks/").status_code == 404


def test_an_epic_in_use_is_not_deleted_for_good(carol: User) -> None:
    epic = make_epic()
    task = make_task(epic_id=epic.ref)
    response = ApiClient(carol).delete(f"/api/v1/epics/{epic.ref}/?permanent=true")
    assert (response.status_code, error_of(response)["details"]["needed_by"]) == (400, [task.ref])


def test_put_is_answered_with_what_is_allowed(alice: User) -> None:
    task = make_task()
    response = ApiClient(alice).request("put", f"{TASKS}{task.ref}/", {"title": "x"})
    assert response.status_code == 405
    assert "PATCH" in error_of(response)["details"]["allowed"]


def test_null_in_a_patch_clears_a_field_or_is_refused_by_its_name(alice: User) -> None:
    client = ApiClient(alice)
    made = client.post(
        "/api/v1/tasks/", {"title": "T", "priority": "high", "assignee": "alice"}
    ).json()
    patched = client.patch(
        f"/api/v1/tasks/{made['id']}/", {"priority": None, "assignee": None}
    ).json()
    assert (patched["priority"], patched["assignee"]) == ("none", None)
    for name in ("title", "status"):
        answer = client.patch(f"/api/v1/tasks/{made['id']}/", {name: None})
        assert (answer.status_code, error_of(answer)["details"]["field"]) == (400, name)
