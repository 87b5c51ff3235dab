"""Test contract section 3, adr-0001 sections 1 and 3, adr-0006: every URI pattern, read over
REST.
"""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.api.clients import ApiClient
from tests.contract.calling import EPIC, TASK, contents, etag_of, read, refused, write
from tests.contract.conftest import ADR, DESCRIPTION

ARCHIVED = "mcp://backlog/archive/TASK-0001"
READ_ONLY = {"read": True, "write": False, "delete": False, "share": False}


@pytest.mark.parametrize(
    ("uri", "mime_type", "value"),
    [
        (f"{TASK}/description", "text/markdown", DESCRIPTION),
        (f"{TASK}/title", "text/plain", "Writable resources for auth"),
        (f"{TASK}/status", "text/plain", "open"),
        (f"{TASK}/priority", "text/plain", "high"),
        (f"{TASK}/assignee", "text/plain", "alice"),
        (f"{TASK}/due_date", "text/plain", "2026-12-24"),
        (f"{TASK}/id", "text/plain", "TASK-0039"),
        (f"{TASK}/type", "text/plain", "task"),
        (f"{TASK}/version", "text/plain", 1),
        (f"{TASK}/archived_at", "text/plain", None),
        (f"{TASK}/epic_id", "text/plain", "EPIC-0002"),
        (f"{TASK}/parent_id", "text/plain", "EPIC-0002"),
        (f"{TASK}/labels", "application/json", ["auth", "mcp"]),
        (f"{TASK}/labels/1", "text/plain", "mcp"),
        (f"{TASK}/evidence", "application/json", ["first", "second"]),
        (f"{TASK}/evidence/0", "text/plain", "first"),
        (f"{TASK}/blocked_reason/0", "text/plain", "none yet"),
        (f"{TASK}/depends_on", "application/json", ["TASK-0038"]),
        (f"{TASK}/depends_on/0", "text/plain", "TASK-0038"),
        (
            f"{TASK}/references",
            "application/json",
            [{"url": "https://example.org/a", "title": "A"}],
        ),
        (
            f"{TASK}/references/0",
            "application/json",
            {"url": "https://example.org/a", "title": "A"},
        ),
        (f"{EPIC}/title", "text/plain", "Authentication"),
        (f"{EPIC}/labels/0", "text/plain", "auth"),
        (f"{ARCHIVED}/title", "text/plain", "Old"),
        (f"{ARCHIVED}/evidence/0", "text/plain", "e"),
    ],
)
def test_fields_and_elements_have_addresses(
    backlog: ApiClient, uri: str, mime_type: str, value: Any
) -> None:
    reading = read(backlog, uri).json()
    assert (reading["uri"], reading["mime_type"], reading["contents"]) == (uri, mime_type, value)


@pytest.mark.parametrize(
    ("uri", "ids"),
    [
        ("mcp://backlog/tasks", ["TASK-0038", "TASK-0039"]),
        ("mcp://backlog/tasks?status=open", ["TASK-0039"]),
        ("mcp://backlog/epics", ["EPIC-0002"]),
        ("mcp://backlog/epics/EPIC-0002/tasks", ["TASK-0039"]),
        ("mcp://backlog/epics/EPIC-0002/tasks?status=done", []),
        ("mcp://backlog/archive", ["TASK-0001"]),
        ("mcp://backlog/archive?type=epic", []),
    ],
)
def test_collections_have_addresses(backlog: ApiClient, uri: str, ids: list[str]) -> None:
    reading = read(backlog, uri).json()
    assert sorted(row["id"] for row in reading["contents"]["results"]) == ids
    assert (reading["contents"]["total"], reading["contents"]["next_cursor"]) == (len(ids), None)
    assert (reading["mime_type"], reading["permissions"]) == ("application/json", READ_ONLY)


@pytest.mark.parametrize("uri", [TASK, EPIC, ARCHIVED])
def test_a_thing_is_json_with_every_field_of_section_2(backlog: ApiClient, uri: str) -> None:
    thing = contents(backlog, uri)
    assert set(thing) >= {
        "id", "type", "title", "description", "status", "priority", "labels", "assignee", "due_date", "evidence",
        "blocked_reason", "references", "created_at", "updated_at", "archived_at", "version", "etag",
    }  # fmt: skip
    assert thing["id"] in uri and bool(thing["archived_at"]) is (uri == ARCHIVED)
    assert thing["etag"] == etag_of(backlog, uri)


@pytest.mark.parametrize("uri", [TASK, EPIC, ARCHIVED])
def test_a_thing_is_a_markdown_file_and_its_frontmatter(backlog: ApiClient, uri: str) -> None:
    file, thing = read(backlog, f"{uri}/file").json(), contents(backlog, uri)
    assert file["mime_type"] == "text/markdown"
    assert file["contents"].startswith(f"---\nid: {thing['id']}\ntitle: {thing['title']}\n")
    assert file["contents"].rstrip().endswith(thing["description"].rstrip())
    metadata = contents(backlog, f"{uri}/metadata")
    assert metadata["title"] == thing["title"] and "description" not in metadata


def test_the_schema_says_what_each_field_takes(backlog: ApiClient, bob: User) -> None:
    schema = contents(backlog, f"{TASK}/schema")
    assert (schema["uri"], schema["type"]) == (TASK, "object")
    assert schema["operations"] == ["set", "merge", "delete_field", "restore"]
    fields = schema["properties"]
    assert fields["description"]["type"] == "text/markdown" and fields["description"]["description"]
    assert (fields["title"]["type"], fields["title"]["maxLength"]) == ("text/plain", 200)
    assert fields["status"]["enum"] == ["open", "in_progress", "blocked", "done", "cancelled"]
    for name in ("id", "type", "created_at", "updated_at", "version", "etag"):
        assert (fields[name]["writable"], fields[name]["operations"]) == (False, [])
    for uri, reader in ((TASK, backlog), (TASK, ApiClient(bob)), (ARCHIVED, backlog)):
        for field in contents(reader, f"{uri}/schema")["properties"].values():
            capabilities = read(reader, field["uri"]).json()["capabilities"]
            assert (field["writable"], field["operations"]) == (
                capabilities["writable"],
                capabilities["operations"],
            )


@pytest.mark.parametrize("base", [TASK, ARCHIVED])
def test_histories_and_comments_have_addresses(backlog: ApiClient, base: str) -> None:
    whole = contents(backlog, f"{base}/versions")["results"]
    assert [entry["version"] for entry in whole] == sorted(
        (entry["version"] for entry in whole), reverse=True
    )
    assert whole[0]["etag"] == etag_of(backlog, base)
    assert {"version", "etag", "timestamp", "author", "operation"} <= set(whole[0])
    [first] = contents(backlog, f"{base}/title/versions")["results"]
    assert (first["version"], first["etag"]) == (1, etag_of(backlog, f"{base}/title"))
    said = [comment["body"] for comment in contents(backlog, f"{base}/comments")["results"]]
    assert said == (["Before it went"] if base == ARCHIVED else [])


def test_an_archived_epic_still_shows_its_tasks(backlog: ApiClient) -> None:
    assert backlog.delete("/api/v1/epics/EPIC-0002/").status_code == 204
    [task] = contents(backlog, "mcp://backlog/archive/EPIC-0002/tasks")["results"]
    assert task["id"] == "TASK-0039"
    refused(read(backlog, "mcp://backlog/archive/EPIC-0001/tasks"), "not_found", 404)


@pytest.mark.parametrize(
    "part", ["", "/title", "/file", "/metadata", "/schema", "/versions", "/comments", "/tasks"]
)
def test_what_is_not_archived_is_not_in_the_archive(backlog: ApiClient, part: str) -> None:
    refused(read(backlog, f"mcp://backlog/archive/TASK-0039{part}"), "not_found", 404)


def test_a_reading_carries_what_a_writer_needs(backlog: ApiClient, bob: User) -> None:
    response = read(backlog, f"{TASK}/description")
    reading = response.json()
    assert set(reading) == {
        "uri", "mime_type", "size", "etag", "version", "capabilities", "permissions", "contents",
    }  # fmt: skip
    assert reading["size"] == len(DESCRIPTION) and response["ETag"] == f'"{reading["etag"]}"'
    text = ["str_replace", "insert", "append", "prepend", "delete", "set", "restore"]
    assert reading["capabilities"] == {
        "readable": True,
        "writable": True,
        "subscribable": True,
        "operations": text,
    }
    assert reading["permissions"] == {"read": True, "write": True, "delete": True, "share": True}
    for reader, uri in (
        (ApiClient(bob), f"{TASK}/description"),
        (backlog, f"{ARCHIVED}/description"),
    ):
        seen = read(reader, uri).json()
        assert (seen["capabilities"]["writable"], seen["capabilities"]["operations"]) == (False, [])
        assert seen["permissions"] == READ_ONLY


@pytest.mark.parametrize(
    "part", ["", "/description", "/file", "/metadata", "/evidence", "/evidence/1"]
)
@pytest.mark.parametrize("form", ["{}?version=1", "{}@v1"])
def test_any_versioned_address_reads_as_it_was(backlog: ApiClient, part: str, form: str) -> None:
    before = read(backlog, TASK + part).json()
    write(
        backlog,
        TASK,
        {
            "type": "merge",
            "value": {"description": "new", "evidence": ["x", "y"], "status": "done"},
        },
    )
    then = read(backlog, form.format(TASK + part)).json()
    assert (then["contents"], then["etag"], then["version"]) == (
        before["contents"],
        before["etag"],
        1,
    )
    assert then["permissions"] == READ_ONLY
    assert contents(backlog, TASK + part) != before["contents"]


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md", ADR),
        ("mcp://backlog/resources/viewer/components/resource-viewer.ts", "export {};\n"),
        ("mcp://backlog/artifacts/task-0060/artifact.md", "# Artifact\n"),
        ("mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md@v1", ADR),
        ("mcp://backlog/artifacts/task-0060/artifact.md?version=1", "# Artifact\n"),
    ],
)
def test_files_have_addresses(client: ApiClient, files: Path, uri: str, text: str) -> None:
    assert contents(client, uri) == text


def test_binary_travels_as_base64(client: ApiClient, files: Path) -> None:
    reading = read(client, "mcp://backlog/resources/docs/logo.png").json()
    assert (reading["encoding"], reading["contents"]) == ("base64", "iVBORw0KGgoA")
    assert (reading["mime_type"], reading["size"]) == ("image/png", 9)


@pytest.mark.parametrize(
    ("uri", "children"),
    [
        ("mcp://backlog/resources", ["resources/docs", "resources/viewer"]),
        ("mcp://backlog/resources/docs", ["resources/docs/adr", "resources/docs/logo.png"]),
        ("mcp://backlog/artifacts", ["artifacts/task-0060"]),
    ],
)
def test_a_folder_lists_its_children(
    client: ApiClient, files: Path, uri: str, children: list[str]
) -> None:
    listed = contents(client, uri)
    assert [row["path"] for row in listed["results"]] == children
    page = contents(client, f"{uri}?limit=1")
    if page["next_cursor"]:
        page["results"] += contents(client, f"{uri}?limit=1&cursor={page['next_cursor']}")[
            "results"
        ]
    assert page["results"] == listed["results"]
    refused(read(client, f"{uri}?cursor=nonsense"), "validation_failed", 400)


def test_a_fragment_is_for_viewers_and_changes_nothing_of_what_is_read(
    backlog: ApiClient, client: ApiClient, files: Path
) -> None:
    mirrored = "mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md"
    local = f"file://{files}/docs/adr/0004-mcp-resource-viewer.md"
    for uri in (
        TASK,
        f"{TASK}/description",
        f"{TASK}@v1",
        "mcp://backlog/tasks?limit=1",
        mirrored,
        local,
    ):
        plain = read(client, uri).json()
        for fragment in ("#L10-L20", "#a-section", "#"):
            assert read(client, uri + fragment).json() == plain | {"uri": uri + fragment}


def test_a_write_to_a_fragment_is_refused(backlog: ApiClient) -> None:
    before = contents(backlog, f"{TASK}/description")
    details = refused(
        write(backlog, f"{TASK}/description#L1", {"type": "append", "content": "x"}),
        "invalid_uri",
        400,
    )
    assert details["fragment"] == "L1" and details["patterns"]
    assert contents(backlog, f"{TASK}/description") == before


def test_the_file_address_of_a_folder_lists_it_as_its_own_does(
    client: ApiClient, files: Path
) -> None:
    for folder in ("docs", "docs/adr"):
        local, mirrored = f"file://{files}/{folder}", f"mcp://backlog/resources/{folder}"
        assert contents(client, local) == contents(client, mirrored)
        assert contents(client, f"{local}?limit=1") == contents(client, f"{mirrored}?limit=1")
    first = contents(client, f"file://{files}/docs?limit=1")
    rest = contents(client, f"file://{files}/docs?cursor={first['next_cursor']}")
    assert (
        first["results"] + rest["results"]
        == contents(client, "mcp://backlog/resources/docs")["results"]
    )
    refused(read(client, f"file://{files}"), "not_found", 404)
    refused(read(client, f"file://{files}/docs?nothing=1"), "validation_failed", 400)


def test_file_addresses_resolve_inside_a_root_alone(client: ApiClient, files: Path) -> None:
    assert contents(client, f"file://{files}/docs/adr/0004-mcp-resource-viewer.md") == ADR
    for outside in (
        files / "secret.txt",
        files / "docs/link.txt",
        files / "docs/none.md",
        Path("/etc/passwd"),
    ):
        refused(read(client, f"file://{outside}"), "not_found", 404)
    refused(read(client, f"file://{files}/docs/../secret.txt"), "invalid_uri", 400)


@pytest.mark.parametrize(
    "uri", ["admin://users", "admin://roles", "admin://config/oauth", "admin://config/sync"]
)
def test_what_admins_see_is_not_there_for_others(client: ApiClient, carol: User, uri: str) -> None:
    assert contents(ApiClient(carol), uri)
    refused(read(client, uri), "not_found", 404)


def test_the_other_schemes_answer(backlog: ApiClient) -> None:
    assert contents(backlog, "auth://status")["role"] == "contributor"
    names = [row["name"] for row in contents(backlog, "metadata://templates")["results"]]
    assert {"bug", "feature", "spike"} <= set(names)
    assert contents(backlog, "metadata://templates/bug")["task"]["description"]
    assert contents(backlog, "workflow://workflows")["results"] == []
    refused(read(backlog, "workflow://workflows/1/status"), "not_found", 404)
    assert contents(backlog, "mcp://backlog/context/TASK-0039?max_tokens=4000")["focus"] == TASK
    assert set(contents(backlog, "mcp://backlog/changes?since=")) == {"results", "next_cursor"}


@pytest.mark.parametrize(
    "uri",
    [
        "mcp://backlog/tasks/TASK-0040",
        "mcp://backlog/tasks/TASK-39",
        "mcp://backlog/tasks/task-0039",
        "mcp://backlog/tasks/EPIC-0002",
        f"{TASK}/nothing",
        f"{TASK}/evidence/2",
        f"{TASK}/evidence/-1",
        f"{TASK}/title/0",
        f"{TASK}?version=2",
        "mcp://backlog/archive/TASK-9999",
        "mcp://backlog/resources/none.md",
        "metadata://templates/none",
    ],
)
def test_what_is_absent_is_not_found(backlog: ApiClient, uri: str) -> None:
    refused(read(backlog, uri), "not_found", 404)


@pytest.mark.parametrize(
    "uri",
    [
        "tasks",
        "mcp://elsewhere/tasks",
        "mcp://backlog/nothing",
        f"{TASK}/evidence/0/x",
        "mcp://backlog/tasks?version=1",
    ],
)
def test_what_is_no_address_is_answered_with_the_patterns(backlog: ApiClient, uri: str) -> None:
    assert refused(read(backlog, uri), "invalid_uri", 400)["patterns"]


@pytest.mark.parametrize(
    ("uri", "known"),
    [
        (f"{TASK}?colour=red", ["version"]),
        (f"{TASK}/versions?colour=red", ["limit", "cursor"]),
        ("mcp://backlog/changes?colour=red", ["since", "limit"]),
        ("auth://status?colour=red", []),
    ],
)
def test_an_unknown_parameter_is_answered_with_the_known_ones(
    backlog: ApiClient, uri: str, known: list[str]
) -> None:
    details = refused(read(backlog, uri), "validation_failed", 400)
    assert (details["field"], details["value"], details["allowed_values"]) == (
        "colour",
        "red",
        known,
    )
