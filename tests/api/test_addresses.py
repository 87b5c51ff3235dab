"""Test reading and writing any address over REST: examples of the contract, sections 3 and 4, and
of the two specs.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_epic, make_task, make_user, task_uri

WRITE = "/api/v1/write/"
BATCH = "/api/v1/write_batch/"


def read(client: ApiClient, uri: str) -> Any:
    return client._client.get("/api/v1/resource/", {"uri": uri}, headers=client._headers)


def written(client: ApiClient, uri: str, operation: dict[str, Any], **more: Any) -> Any:
    return client.post(WRITE, {"uri": uri, "operation": operation, **more})


@pytest.fixture
def client(alice: User) -> ApiClient:
    return ApiClient(alice)


@pytest.fixture
def task(alice: User) -> Task:
    return make_task(
        title="Add login",
        description="# Login\n\n## Old Section\nOld content\n",
        evidence=["first", "second"],
        epic_id=make_epic().ref,
        labels=["auth"],
        actor=as_actor(alice),
    )


@pytest.mark.parametrize(
    ("path", "mime_type", "contents"),
    [
        ("/description", "text/markdown", "# Login\n\n## Old Section\nOld content\n"),
        ("/title", "text/plain", "Add login"),
        ("/status", "text/plain", "open"),
        ("/evidence", "application/json", ["first", "second"]),
        ("/evidence/0", "text/plain", "first"),
        ("/epic_id", "text/plain", "EPIC-0001"),
        ("/parent_id", "text/plain", "EPIC-0001"),
        ("/id", "text/plain", "TASK-0001"),
    ],
)
def test_every_field_has_an_address(
    client: ApiClient, task: Task, path: str, mime_type: str, contents: Any
) -> None:
    reading = read(client, task_uri(task) + path).json()
    assert (reading["mime_type"], reading["contents"]) == (mime_type, contents)
    assert reading["uri"] == task_uri(task) + path


def test_a_reading_says_what_can_be_done(client: ApiClient, bob: User, task: Task) -> None:
    reading = read(client, task_uri(task, "description")).json()
    assert reading["size"] == len("# Login\n\n## Old Section\nOld content\n")
    assert reading["capabilities"] == {
        "readable": True,
        "writable": True,
        "subscribable": True,
        "operations": ["str_replace", "insert", "append", "prepend", "delete", "set", "restore"],
    }
    assert reading["permissions"] == {"read": True, "write": True, "delete": True, "share": True}
    of_bob = read(ApiClient(bob), task_uri(task, "description")).json()
    assert of_bob["capabilities"]["writable"] is False
    assert of_bob["permissions"] == {"read": True, "write": False, "delete": False, "share": False}


def test_a_task_as_a_file_and_its_frontmatter_alone(client: ApiClient, task: Task) -> None:
    file = read(client, task_uri(task, "file")).json()
    assert file["mime_type"] == "text/markdown"
    assert file["contents"].startswith("---\nid: TASK-0001\n")
    assert file["contents"].endswith("---\n# Login\n\n## Old Section\nOld content\n\n")
    metadata = read(client, task_uri(task, "metadata")).json()["contents"]
    assert metadata["title"] == "Add login" and "description" not in metadata


def test_the_schema_names_each_field_with_its_address(client: ApiClient, task: Task) -> None:
    schema = read(client, task_uri(task, "schema")).json()["contents"]
    assert schema["type"] == "object"
    assert schema["properties"]["description"]["uri"] == task_uri(task, "description")
    assert schema["properties"]["title"]["maxLength"] == 200
    assert schema["properties"]["status"]["enum"] == [
        "open",
        "in_progress",
        "blocked",
        "done",
        "cancelled",
    ]
    assert schema["properties"]["created_at"]["writable"] is False


def test_collections_answer_to_queries(client: ApiClient, task: Task) -> None:
    make_task(title="Other", status="done")
    assert read(client, "mcp://backlog/tasks?status=open").json()["contents"]["total"] == 1
    assert (
        read(client, "mcp://backlog/epics/EPIC-0001/tasks").json()["contents"]["results"][0]["id"]
        == task.ref
    )
    counted = read(client, "mcp://backlog/tasks?aggregate=count&group_by=status").json()["contents"]
    assert (counted["open"], counted["done"]) == (1, 1)
    assert read(client, 'mcp://backlog/tasks?filter=title~"login"').json()["contents"]["total"] == 1


def test_the_archive_reads_and_does_not_write(client: ApiClient, alice: User, task: Task) -> None:
    assert read(client, f"mcp://backlog/archive/{task.ref}").status_code == 404
    write_path.archive(as_actor(alice), task_uri(task))
    assert read(client, "mcp://backlog/archive").json()["contents"]["total"] == 1
    assert read(client, f"mcp://backlog/archive/{task.ref}/title").json()["contents"] == "Add login"
    refused = written(client, task_uri(task, "description"), {"type": "append", "content": "x"})
    assert refused.status_code == 403
    assert error_of(refused)["message"] == "Archived tasks are read-only"


@pytest.mark.parametrize("form", ["{uri}?version=1", "{uri}@v1"])
def test_any_version_reads_back(client: ApiClient, task: Task, form: str) -> None:
    uri = task_uri(task, "description")
    written(client, uri, {"type": "append", "content": "more"})
    then = read(client, form.format(uri=uri)).json()
    assert then["contents"].endswith("Old content\n")
    assert then["version"] == 1 and then["capabilities"]["writable"] is False


def test_str_replace_sends_only_the_change(client: ApiClient, task: Task) -> None:
    operation = {
        "type": "str_replace",
        "old_str": "## Old Section\nOld content",
        "new_str": "## New Section\nNew $1 \\1 content",
    }
    answer = written(client, task_uri(task, "description"), operation)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) >= {"uri", "etag", "version", "mime_type", "size", "diff"}
    assert "-## Old Section" in body["diff"] and "+New $1 \\1 content" in body["diff"]
    assert Task.objects.get().description == "# Login\n\n## New Section\nNew $1 \\1 content\n"


def test_a_field_keeps_its_etag_while_others_change(client: ApiClient, task: Task) -> None:
    etag = read(client, task_uri(task, "description")).json()["etag"]
    written(client, task_uri(task, "status"), {"type": "set", "value": "in_progress"})
    answer = written(
        client, task_uri(task, "description"), {"type": "append", "content": "x"}, etag=etag
    )
    assert answer.status_code == 200
    stale = written(
        client, task_uri(task, "description"), {"type": "append", "content": "y"}, etag=etag
    )
    assert stale.status_code == 409
    details = error_of(stale)["details"]
    assert details["current_etag"] == answer.json()["etag"] and "+x" in details["diff"]


def test_text_that_is_not_there_is_answered_with_the_nearest_line(
    client: ApiClient, task: Task
) -> None:
    operation = {"type": "str_replace", "old_str": "## Old Sektion", "new_str": "x"}
    response = written(client, task_uri(task, "description"), operation)
    assert response.status_code == 422
    error = error_of(response)
    assert error["code"] == "operation_failed"
    assert error["details"]["nearest_line"]["text"] == "## Old Section"
    assert "searched_content_preview" in error["details"]


@pytest.mark.parametrize(
    ("path", "operation", "code", "status"),
    [
        ("/status", {"type": "set", "value": "invalid_status"}, "validation_failed", 400),
        ("/status", {"type": "append", "content": "x"}, "invalid_operation", 400),
        ("/description", {"type": "fly"}, "invalid_operation", 400),
        ("/description", {"type": "append"}, "validation_failed", 400),
        (
            "/description",
            {"type": "append", "content": "x", "where": "end"},
            "validation_failed",
            400,
        ),
        ("/description", "append", "validation_failed", 400),
        ("/id", {"type": "set", "value": "TASK-0002"}, "permission_denied", 403),
        ("/nothing", {"type": "set", "value": 1}, "not_found", 404),
        ("/evidence/9", {"type": "set", "value": "x"}, "not_found", 404),
        ("/evidence", {"type": "array_remove", "index": 9}, "operation_failed", 422),
        ("/file", {"type": "append", "content": "x"}, "invalid_operation", 400),
        ("/versions", {"type": "append", "content": "x"}, "invalid_operation", 400),
        ("?status=open", {"type": "set", "value": "x"}, "invalid_operation", 400),
        ("@v1", {"type": "set", "value": "x"}, "invalid_operation", 400),
        ("/description/0/x/y", {"type": "set", "value": "x"}, "invalid_uri", 400),
        ("", {"type": "set", "value": "x"}, "validation_failed", 400),
        ("", {"type": "set", "field": "created_at", "value": "x"}, "permission_denied", 403),
        ("", {"type": "merge", "value": {"colour": "red"}}, "validation_failed", 400),
        ("", {"type": "restore", "version": 99}, "not_found", 404),
    ],
)
def test_errors_of_a_write(
    client: ApiClient, task: Task, path: str, operation: Any, code: str, status: int
) -> None:
    response = written(client, task_uri(task) + path, operation)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert Task.objects.get().version == 1


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"type": "array_append", "value": "third"}, ["first", "second", "third"]),
        ({"type": "array_prepend", "value": "zero"}, ["zero", "first", "second"]),
        ({"type": "array_insert", "index": 1, "value": "middle"}, ["first", "middle", "second"]),
        ({"type": "array_remove", "index": 0}, ["second"]),
        ({"type": "array_remove", "value": "second"}, ["first"]),
        ({"type": "set", "value": ["only"]}, ["only"]),
    ],
)
def test_arrays_are_edited_in_place(
    client: ApiClient, task: Task, operation: Any, expected: list[str]
) -> None:
    assert written(client, task_uri(task, "evidence"), operation).status_code == 200
    assert Task.objects.get().evidence == expected


def test_an_element_is_edited_by_its_index(client: ApiClient, task: Task) -> None:
    answer = written(client, task_uri(task, "evidence", 1), {"type": "append", "content": "!"})
    assert answer.status_code == 200
    assert Task.objects.get().evidence == ["first", "second!"]


def test_a_task_is_merged_cleared_and_restored(client: ApiClient, task: Task) -> None:
    uri = task_uri(task)
    assert (
        written(
            client, uri, {"type": "merge", "value": {"status": "done", "labels": []}}
        ).status_code
        == 200
    )
    assert written(client, uri, {"type": "delete_field", "field": "epic_id"}).status_code == 200
    assert written(client, uri, {"type": "restore", "version": 1}).status_code == 200
    now = Task.objects.get()
    assert (now.status, now.labels, now.epic_id) == (1, ["auth"], 1)


def test_a_dry_run_answers_the_diff_and_changes_nothing(client: ApiClient, task: Task) -> None:
    answer = written(client, task_uri(task, "title"), {"type": "set", "value": "New"}, dry_run=True)
    assert "+New" in answer.json()["diff"]
    assert (
        Task.objects.get().title == "Add login" and Change.objects.filter(kind="task").count() == 1
    )


def test_a_path_of_one_machine_is_saved_with_a_warning(client: ApiClient, task: Task) -> None:
    operation = {"type": "append", "content": "see [it](file:///Users/me/notes.md)"}
    answer = written(client, task_uri(task, "description"), operation).json()
    assert "file:///Users/me/notes.md" in answer["warnings"][0]
    quiet = written(
        client, task_uri(task, "description"), {"type": "append", "content": "fine"}
    ).json()
    assert "warnings" not in quiet
    created = client.post(
        "/api/v1/tasks/", {"title": "x", "description": "file:///Users/me/a.md"}
    ).json()
    assert len(created["warnings"]) == 1


def test_a_batch_of_the_spec_is_all_or_nothing(client: ApiClient, task: Task) -> None:
    operations = [
        {
            "uri": task_uri(task, "description"),
            "operation": {"type": "append", "content": "\n## New Section\n"},
        },
        {"uri": task_uri(task, "status"), "operation": {"type": "set", "value": "in_progress"}},
        {
            "uri": task_uri(task, "evidence"),
            "operation": {"type": "array_append", "value": "Updated description"},
        },
    ]
    assert client.post(BATCH, {"operations": operations, "atomic": True}).json()["failed"] == 0
    assert Task.objects.get().version == 4
    bad = [
        *operations,
        {"uri": task_uri(task, "status"), "operation": {"type": "set", "value": "no"}},
    ]
    refused = client.post(BATCH, {"operations": bad, "atomic": True})
    assert refused.status_code == 400 and error_of(refused)["details"]["operation_index"] == 3
    assert Task.objects.get().version == 4
    partly = client.post(BATCH, {"operations": bad, "atomic": False}).json()
    assert partly["failed"] == 1 and partly["results"][3]["error"]["code"] == "validation_failed"
    assert Task.objects.get().version == 6


def test_the_history_of_a_task_and_of_a_field(client: ApiClient, task: Task) -> None:
    written(client, task_uri(task, "description"), {"type": "append", "content": "x"})
    written(client, task_uri(task, "status"), {"type": "set", "value": "done"})
    whole = client.get(f"/api/v1/versions/?uri={task_uri(task)}").json()["results"]
    assert [entry["version"] for entry in whole] == [3, 2, 1]
    field = client.get(f"/api/v1/versions/?uri={task_uri(task, 'description')}").json()["results"]
    assert [entry["version"] for entry in field] == [2, 1]
    assert field[0]["etag"] == read(client, task_uri(task, "description")).json()["etag"]
    assert field[0]["author"] == "alice" and field[0]["operation"] == {
        "type": "append",
        "content": "x",
    }
    by_address = read(client, task_uri(task, "description", "versions")).json()["contents"][
        "results"
    ]
    assert by_address == field


@pytest.mark.django_db(
    transaction=True, serialized_rollback=True
)  # the feed waits for running transactions to end
def test_the_change_feed_goes_on_from_its_cursor(
    client: ApiClient, task: Task, mallory: User
) -> None:
    first = client.get("/api/v1/changes/?limit=1").json()
    rest = client.get(f"/api/v1/changes/?since={first['next_cursor']}").json()
    assert [change["id"] for change in first["results"] + rest["results"]] == [
        "EPIC-0001",
        "TASK-0001",
    ]
    assert client.get(f"/api/v1/changes/?since={rest['next_cursor']}").json()["results"] == []
    assert client.get("/api/v1/changes/?since=nonsense").status_code == 400


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "tasks/TASK-0001",
        "mcp://elsewhere/tasks",
        "mcp://backlog/nothing",
        "mcp://backlog/tasks/TASK-0001/description/0/extra",
        "mcp://backlog/resources/../secret",
        "mcp://backlog/resources/%2e%2e/secret",
        "mcp://user@backlog/tasks",
        "mcp://backlog:80/tasks",
        "MCP://backlog/tasks",
        "http://backlog/tasks",
        "mcp://backlog/tasks?version=1",
        "mcp://backlog/" + "a" * 5000,
    ],
)
def test_what_is_no_address_of_ours_is_invalid(client: ApiClient, uri: str) -> None:
    response = read(client, uri)
    assert (response.status_code, error_of(response)["code"]) == (400, "invalid_uri")


def test_mallory_and_bob_get_the_same_answer_for_hidden_and_absent(
    bob: User, mallory: User
) -> None:
    make_user("dora", "viewer", "security")
    hidden = make_task(groups=["security"])
    for uri in (
        task_uri(hidden),
        task_uri(hidden, "title"),
        task_uri(hidden, "versions"),
        task_uri(hidden, "file"),
    ):
        response = read(ApiClient(bob), uri)
        assert (response.status_code, error_of(response)["code"]) == (404, "not_found")
    outsider = ApiClient()
    outsider._client.force_login(mallory)
    assert read(outsider, "mcp://backlog/tasks").status_code == 404
    assert read(outsider, "auth://status").json()["contents"]["role"] is None


def test_who_am_i_and_what_only_admins_see(client: ApiClient, carol: User) -> None:
    assert read(client, "auth://status").json()["contents"]["role"] == "contributor"
    for uri in ("admin://users", "admin://roles", "admin://config/sync"):
        assert read(client, uri).status_code == 404
        assert read(ApiClient(carol), uri).status_code == 200
    assert read(ApiClient(carol, scope="read"), "admin://users").status_code == 404


def test_templates_and_runs_have_addresses(client: ApiClient) -> None:
    names = [
        row["name"] for row in read(client, "metadata://templates").json()["contents"]["results"]
    ]
    assert {"bug", "feature", "spike"} <= set(names)
    template = read(client, "metadata://templates/bug").json()["contents"]["task"]
    assert client.post("/api/v1/tasks/", template | {"title": "Bug: x"}).status_code == 201
    assert read(client, "workflow://workflows").json()["contents"]["results"] == []
    assert read(client, "workflow://workflows/1/status").status_code == 404


def test_the_viewers_form_of_a_resource(client: ApiClient, task: Task) -> None:
    response = client.get(f"/mcp/resource?uri={task_uri(task, 'file')}").json()
    assert set(response) == {"content", "frontmatter", "type", "path", "uri", "ext"}
    assert response["content"] == "# Login\n\n## Old Section\nOld content\n\n"
    assert (response["frontmatter"]["id"], response["ext"]) == (task.ref, "md")
