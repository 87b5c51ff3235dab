"""Test contract section 2: objects created, changed and archived over REST, and ids that are never
reused.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.api.clients import ApiClient
from tests.contract.calling import EPIC, TASK, contents, read, refused

PATHS = {"tasks": "TASK", "epics": "EPIC"}
AWKWARD = "\"Quoted\" 'it': $1 \\1 #2 [x] {y} — 漢字 🎉"


@pytest.mark.parametrize(("collection", "prefix"), PATHS.items())
def test_ids_have_four_digits_and_are_never_reused(
    carol: User, collection: str, prefix: str
) -> None:
    client, path = ApiClient(carol), f"/api/v1/{collection}/"
    made = [client.post(path, {"title": "x"}).json()["id"] for _ in range(2)]
    assert made == [f"{prefix}-0001", f"{prefix}-0002"]
    assert client.delete(f"{path}{made[1]}/?permanent=true").status_code == 204
    refused(client.get(f"{path}{made[1]}/"), "not_found", 404)
    assert client.post(path, {"title": "x"}).json()["id"] == f"{prefix}-0003"


@pytest.mark.parametrize("title", [AWKWARD, "x", "x" * 200])
def test_any_title_is_kept_and_blocks_nothing(client: ApiClient, title: str) -> None:
    created = client.post("/api/v1/tasks/", {"title": title})
    assert (created.status_code, created.json()["title"]) == (201, title)
    uri = f"mcp://backlog/tasks/{created.json()['id']}"
    assert (
        client.patch(f"/api/v1/tasks/{created.json()['id']}/", {"status": "done"}).json()["title"]
        == title
    )
    assert contents(client, f"{uri}/metadata")["title"] == title
    assert client.get(created["Location"]).json()["title"] == title


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "title"),
        ({"title": ""}, "title"),
        ({"title": "x" * 201}, "title"),
        ({"status": "nope"}, "status"),
        ({"priority": "p1"}, "priority"),
        ({"labels": "auth"}, "labels"),
        ({"assignee": "nobody"}, "assignee"),
        ({"due_date": "tomorrow"}, "due_date"),
        ({"references": [{"title": "no url"}]}, "references"),
        ({"depends_on": ["TASK-9999"]}, "depends_on"),
        ({"epic_id": "EPIC-9999"}, "epic_id"),
        ({"parent_id": "EPIC-9999"}, "epic_id"),
        ({"epic_id": None, "parent_id": "EPIC-0002"}, "parent_id"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_field_is_named_and_nothing_is_created(
    backlog: ApiClient, values: dict[str, Any], field: str
) -> None:
    title = {} if "title" in values or not values else {"title": "x"}
    response = backlog.post("/api/v1/tasks/", title | values)
    assert refused(response, "validation_failed", 400)["field"] == field
    assert backlog.get("/api/v1/tasks/").json()["total"] == 2
    if values and "title" not in values:
        before = contents(backlog, TASK)
        refused(backlog.patch("/api/v1/tasks/TASK-0039/", values), "validation_failed", 400)
        assert contents(backlog, TASK) == before


def test_an_explicit_parent_is_kept_and_has_two_names(backlog: ApiClient) -> None:
    for name in ("epic_id", "parent_id"):
        made = backlog.post("/api/v1/tasks/", {"title": "x", name: "EPIC-0002"}).json()
        assert (made["epic_id"], made["parent_id"]) == ("EPIC-0002", "EPIC-0002")
    assert (
        backlog.patch(f"/api/v1/tasks/{made['id']}/", {"parent_id": None}).json()["epic_id"] is None
    )


def test_deleting_archives_and_an_unknown_id_is_not_deleted(
    backlog: ApiClient, carol: User
) -> None:
    refused(backlog.delete("/api/v1/tasks/TASK-9999/"), "not_found", 404)
    refused(backlog.delete("/api/v1/tasks/TASK-0039/?permanent=true"), "permission_denied", 403)
    assert backlog.delete("/api/v1/tasks/TASK-0039/").status_code == 204
    assert backlog.get("/api/v1/tasks/").json()["total"] == 1
    assert contents(backlog, "mcp://backlog/archive/TASK-0039")["archived_at"]
    refused(backlog.patch("/api/v1/tasks/TASK-0039/", {"title": "x"}), "permission_denied", 403)
    refused(
        backlog.post("/api/v1/comments/", {"item_id": "TASK-0039", "body": "x"}),
        "permission_denied",
        403,
    )
    assert ApiClient(carol).delete("/api/v1/tasks/TASK-0039/?permanent=true").status_code == 204
    refused(read(backlog, "mcp://backlog/archive/TASK-0039"), "not_found", 404)


@pytest.mark.parametrize("item", ["TASK-0039", "EPIC-0002"])
def test_comments_are_made_on_both_changed_and_removed(
    backlog: ApiClient, bob: User, item: str
) -> None:
    made = backlog.post("/api/v1/comments/", {"item_id": item, "body": AWKWARD})
    assert (made.status_code, made.json()["body"], made.json()["author"]) == (201, AWKWARD, "alice")
    path = f"/api/v1/comments/{made.json()['id']}/"
    assert [
        row["body"] for row in backlog.get(f"/api/v1/comments/?item={item}").json()["results"]
    ] == [AWKWARD]
    assert backlog.patch(path, {"body": "new"}, If_Match=made["ETag"]).json()["version"] == 2
    refused(backlog.patch(path, {"body": "late"}, If_Match=made["ETag"]), "conflict", 409)
    refused(ApiClient(bob).delete(path), "permission_denied", 403)
    assert backlog.delete(path).status_code == 204
    base = TASK if item.startswith("TASK") else EPIC
    assert contents(backlog, f"{base}/comments")["total"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"body": "x"}, "item_id"),
        ({"item_id": 5, "body": "x"}, "item_id"),
        ({"item_id": "TASK-0039"}, "body"),
        ({"item_id": "TASK-0039", "body": " "}, "body"),
        ({"item_id": "TASK-0039", "body": "x", "author": "bob"}, "author"),
    ],
)
def test_a_bad_comment_is_refused(backlog: ApiClient, body: dict[str, Any], field: str) -> None:
    assert (
        refused(backlog.post("/api/v1/comments/", body), "validation_failed", 400)["field"] == field
    )
    refused(
        backlog.post("/api/v1/comments/", {"item_id": "TASK-9999", "body": "x"}), "not_found", 404
    )


def test_a_file_has_its_facts(client: ApiClient) -> None:
    text = "---\ntitle: Told\ntags: [a]\ndescription: why\nowner: me\n---\nBody\n"
    made = client.post("/api/v1/resources/", {"path": "notes/a b.md", "content": text})
    facts = made.json()
    assert made.status_code == 201 and client.get(made["Location"]).status_code == 200
    assert (facts["path"], facts["uri"]) == (
        "resources/notes/a b.md",
        "mcp://backlog/resources/notes/a%20b.md",
    )
    assert (facts["title"], facts["tags"], facts["description"]) == ("Told", ["a"], "why")
    assert (facts["mime_type"], facts["size"], len(facts["sha256"])) == (
        "text/markdown",
        len(text),
        64,
    )
    assert facts["frontmatter"]["owner"] == "me"


def test_the_path_of_an_answer_can_be_sent_back(client: ApiClient) -> None:
    made = client.post(
        "/api/v1/artifacts/", {"path": "artifacts/task-0060/a.md", "content": "x"}
    ).json()
    assert made["path"] == "artifacts/task-0060/a.md"
    moved = client.patch(f"/api/v1/{made['path']}", {"path": "artifacts/task-0060/b.md"})
    assert moved.json()["uri"] == "mcp://backlog/artifacts/task-0060/b.md"
    refused(client.get(f"/api/v1/{made['path']}"), "not_found", 404)


@pytest.mark.parametrize("path", ["", "../x.md", "/etc/x", "a//b.md", "a/../../b.md", 5])
def test_a_bad_path_is_refused(client: ApiClient, path: Any) -> None:
    response = client.post("/api/v1/resources/", {"path": path, "content": "x"})
    assert refused(response, "validation_failed", 400)["field"] == "path"


def test_whoever_has_no_role_sees_nothing(backlog: ApiClient, mallory: User) -> None:
    outsider = ApiClient()
    outsider._client.force_login(mallory)
    for uri in (
        TASK,
        f"{TASK}/title",
        "mcp://backlog/tasks",
        "mcp://backlog/changes",
        "mcp://backlog/archive",
    ):
        refused(read(outsider, uri), "not_found", 404)
        refused(read(ApiClient(), uri), "unauthenticated", 401)
