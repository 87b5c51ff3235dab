"""Test contract section 4, adr-0001 sections 2, 4, 8 and 9: every operation, ETag and error,
written over REST.
"""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.api.clients import ApiClient, error_of
from tests.contract.calling import EPIC, TASK, contents, etag_of, read, refused, write
from tests.contract.conftest import DESCRIPTION

TEXT = ["str_replace", "insert", "append", "prepend", "delete", "set", "restore"]
ARRAY = ["array_append", "array_prepend", "array_insert", "array_remove", "set", "restore"]
OBJECT = ["set", "merge", "delete_field", "restore"]
STATUSES = ["open", "in_progress", "blocked", "done", "cancelled"]
REFERENCE, OTHER = (
    {"url": "https://example.org/a", "title": "A"},
    {"url": "https://example.org/b", "title": "B"},
)
LITERAL = r"$& $1 \1 \g<0> 漢"


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (
            {"type": "str_replace", "old_str": "## Old Section\nOld content", "new_str": "## New Section\nNew content"},
            "# Task Description\n\n## New Section\nNew content\n",
        ),
        ({"type": "str_replace", "old_str": "Old", "new_str": "New", "replace_all": True}, DESCRIPTION.replace("Old", "New")),
        ({"type": "str_replace", "old_str": "content", "new_str": LITERAL}, DESCRIPTION.replace("content", LITERAL)),
        ({"type": "insert", "line": 0, "content": "before\n"}, f"before\n{DESCRIPTION}"),
        ({"type": "insert", "line": 4, "content": "after\n"}, f"{DESCRIPTION}after\n"),
        ({"type": "append", "content": "end"}, f"{DESCRIPTION}end"),
        ({"type": "prepend", "content": "start"}, f"start{DESCRIPTION}"),
        ({"type": "delete", "content": "## Old Section\n"}, DESCRIPTION.replace("## Old Section\n", "")),
        ({"type": "set", "value": "whole"}, "whole"),
    ],
)  # fmt: skip
def test_a_text_is_edited_by_what_changes(
    backlog: ApiClient, operation: dict[str, Any], expected: str
) -> None:
    answer = write(backlog, f"{TASK}/description", operation)
    assert answer.status_code == 200
    body = answer.json()
    assert set(body) == {"uri", "etag", "version", "mime_type", "size", "diff"}
    assert (body["uri"], body["version"], body["mime_type"]) == (
        f"{TASK}/description",
        2,
        "text/markdown",
    )
    assert body["size"] == len(expected.encode()) and body["diff"].startswith(
        "--- description\n+++ description\n@@"
    )
    assert contents(backlog, f"{TASK}/description") == expected
    assert body["etag"] == etag_of(backlog, f"{TASK}/description") == answer["ETag"].strip('"')


@pytest.mark.parametrize(
    ("part", "operation", "after"),
    [
        ("status", {"type": "set", "value": "in_progress"}, "in_progress"),
        ("title", {"type": "set", "value": "x" * 200}, "x" * 200),
        ("title", {"type": "set", "value": "a\nb"}, "a b"),
        ("title", {"type": "set", "value": "\"Quoted\" 'title': $1 \\1 #1 — 漢字"}, "\"Quoted\" 'title': $1 \\1 #1 — 漢字"),
        ("assignee", {"type": "set", "value": None}, None),
        ("epic_id", {"type": "set", "value": None}, None),
        ("parent_id", {"type": "set", "value": "EPIC-0002"}, "EPIC-0002"),
        ("evidence", {"type": "array_append", "value": "third"}, ["first", "second", "third"]),
        ("evidence", {"type": "array_prepend", "value": "zeroth"}, ["zeroth", "first", "second"]),
        ("evidence", {"type": "array_insert", "index": 1, "value": "mid"}, ["first", "mid", "second"]),
        ("evidence", {"type": "array_insert", "index": 2, "value": "last"}, ["first", "second", "last"]),
        ("evidence", {"type": "array_remove", "index": 0}, ["second"]),
        ("evidence", {"type": "array_remove", "value": "second"}, ["first"]),
        ("evidence", {"type": "set", "value": ["only"]}, ["only"]),
        ("labels", {"type": "array_append", "value": "new"}, ["auth", "mcp", "new"]),
        ("depends_on", {"type": "array_remove", "value": "TASK-0038"}, []),
        ("references", {"type": "array_remove", "value": REFERENCE}, []),
        ("evidence/1", {"type": "set", "value": "changed"}, "changed"),
        ("evidence/1", {"type": "append", "content": "!"}, "second!"),
        ("references/0", {"type": "merge", "value": {"title": "B"}}, REFERENCE | {"title": "B"}),
        ("references/0", {"type": "set", "field": "title", "value": "C"}, REFERENCE | {"title": "C"}),
        ("references/0", {"type": "set", "value": OTHER}, OTHER),
    ],
)  # fmt: skip
def test_fields_and_elements_are_written_in_place(
    backlog: ApiClient, part: str, operation: dict[str, Any], after: Any
) -> None:
    before = contents(backlog, f"{TASK}/{part}")
    answer = write(backlog, f"{TASK}/{part}", operation)
    assert answer.status_code == 200, answer.content
    assert contents(backlog, f"{TASK}/{part}") == after
    diff = answer.json()["diff"]
    if isinstance(diff, str):
        assert f"-{before}\n" in diff and f"+{after}\n" in diff
    else:
        assert diff == {"before": before, "after": after}


def test_a_whole_thing_is_set_merged_cleared_and_restored(backlog: ApiClient) -> None:
    answer = write(backlog, TASK, {"type": "set", "field": "status", "value": "done"}).json()
    assert answer["diff"] == {"status": {"before": "open", "after": "done"}}
    merged = write(
        backlog, EPIC, {"type": "merge", "value": {"priority": "low", "labels": ["a", "b"]}}
    ).json()
    assert merged["diff"]["labels"] == {"before": ["auth"], "after": ["a", "b"]}
    assert write(backlog, TASK, {"type": "delete_field", "field": "due_date"}).status_code == 200
    assert contents(backlog, TASK)["due_date"] is None
    assert write(backlog, TASK, {"type": "restore", "version": 1}).status_code == 200
    now = contents(backlog, TASK)
    assert (now["status"], now["due_date"], now["version"]) == ("open", "2026-12-24", 4)
    assert write(backlog, f"{EPIC}/labels", {"type": "restore", "version": 1}).json()["diff"][
        "after"
    ] == ["auth"]


def test_a_text_file_answers_with_the_diff_of_its_text(client: ApiClient, files: Path) -> None:
    uri = "mcp://backlog/artifacts/task-0060/artifact.md"
    for operation in (
        {"type": "append", "content": "more\n"},
        {"type": "str_replace", "old_str": "# Artifact", "new_str": "# Renamed"},
        {"type": "prepend", "content": "---\ntitle: Told\ntags: [a]\n---\n"},
        {"type": "set", "value": "# New\n"},
    ):
        answer = write(client, uri, operation).json()
        assert answer["diff"].startswith("--- content\n+++ content\n@@"), operation
    facts = write(client, uri, {"type": "merge", "value": {"title": "T"}}).json()
    assert list(facts["diff"]) == ["title"]


@pytest.mark.parametrize(
    ("uri", "allowed"),
    [
        (f"{TASK}/description", TEXT),
        (f"{TASK}/title", TEXT),
        (f"{TASK}/status", ["set", "restore"]),
        (f"{TASK}/evidence", ARRAY),
        (f"{TASK}/evidence/0", TEXT[:-1]),
        (TASK, OBJECT),
        (EPIC, OBJECT),
        ("mcp://backlog/resources/bytes.bin", OBJECT),
        *((uri, []) for uri in (
            "mcp://backlog/tasks", "mcp://backlog/tasks?status=open", "mcp://backlog/epics", f"{EPIC}/tasks",
            f"{TASK}/file", f"{TASK}/metadata", f"{TASK}/schema", f"{TASK}/versions", f"{TASK}/title/versions",
            f"{TASK}@v1", f"{TASK}/title?version=1", "mcp://backlog/resources", "mcp://backlog/resources/notes",
            "mcp://backlog/changes", "mcp://backlog/context/TASK-0039", "auth://status", "metadata://templates/bug",
            "workflow://workflows", "file:///etc/passwd",
        )),
    ],
)  # fmt: skip
def test_an_operation_that_is_not_for_this_kind_is_answered_with_those_that_are(
    backlog: ApiClient, uri: str, allowed: list[str]
) -> None:
    files = (
        {"path": "bytes.bin", "content": "AAEC", "encoding": "base64"},
        {"path": "notes/a.md", "content": "x"},
    )
    assert [backlog.post("/api/v1/resources/", file).status_code for file in files] == [201, 201]
    operation = (
        {"type": "array_append", "value": "x"}
        if "append" in allowed
        else {"type": "append", "content": "x"}
    )
    for wrong in (operation, {"type": "fly"}):
        assert refused(write(backlog, uri, wrong), "invalid_operation", 400)["allowed"] == allowed
    if allowed:
        assert read(backlog, uri).json()["capabilities"]["operations"] == allowed


@pytest.mark.parametrize(
    ("part", "operation", "field"),
    [
        ("/description", {"type": "append"}, "content"),
        ("/description", {"type": "append", "content": 5}, "content"),
        ("/description", {"type": "append", "content": "x", "where": "end"}, "where"),
        ("/description", {"type": "str_replace", "old_str": "", "new_str": "x"}, "old_str"),
        (
            "/description",
            {"type": "str_replace", "old_str": "x", "new_str": "y", "replace_all": "yes"},
            "replace_all",
        ),
        ("/description", {"type": "insert", "line": "1", "content": "x"}, "line"),
        ("/description", {"type": "insert", "line": True, "content": "x"}, "line"),
        ("/description", "append", "operation"),
        ("/evidence", {"type": "array_remove"}, "index"),
        ("/evidence", {"type": "array_insert", "index": "0", "value": "x"}, "index"),
        ("/evidence", {"type": "array_append", "value": 5}, "evidence"),
        ("/evidence", {"type": "set", "value": "x"}, "evidence"),
        ("/title", {"type": "set", "value": ""}, "title"),
        ("/title", {"type": "set", "value": "\n"}, "title"),
        ("/title", {"type": "set", "value": "x" * 201}, "title"),
        ("/status", {"type": "set", "value": None}, "status"),
        ("/priority", {"type": "set", "value": None}, "priority"),
        ("/due_date", {"type": "set", "value": "2026-02-30"}, "due_date"),
        ("/assignee", {"type": "set", "value": "nobody"}, "assignee"),
        ("/epic_id", {"type": "set", "value": "EPIC-9999"}, "epic_id"),
        ("/parent_id", {"type": "set", "value": "TASK-0038"}, "epic_id"),
        ("/depends_on", {"type": "array_append", "value": "TASK-9999"}, "depends_on"),
        ("/depends_on", {"type": "array_append", "value": "TASK-0039"}, "depends_on"),
        (
            "/references",
            {"type": "array_append", "value": {"url": "javascript:alert(1)"}},
            "references",
        ),
        ("", {"type": "set", "value": "x"}, "field"),
        ("", {"type": "merge", "value": {"colour": "red"}}, "colour"),
        ("", {"type": "merge", "value": []}, "value"),
        ("", {"type": "restore", "version": 0}, "version"),
    ],
)
def test_a_bad_value_or_argument_is_named_and_nothing_is_written(
    backlog: ApiClient, part: str, operation: Any, field: str
) -> None:
    before = contents(backlog, TASK)
    assert (
        refused(write(backlog, TASK + part, operation), "validation_failed", 400)["field"] == field
    )
    assert contents(backlog, TASK) == before


def test_the_validation_example_of_the_spec(backlog: ApiClient) -> None:
    response = write(backlog, f"{TASK}/status", {"type": "set", "value": "invalid_status"})
    details = refused(response, "validation_failed", 400)
    assert details == {"field": "status", "value": "invalid_status", "allowed_values": STATUSES}
    assert error_of(response)["message"] == "Invalid status value"


def test_a_dependency_never_closes_a_circle(backlog: ApiClient) -> None:
    operation = {"type": "set", "value": ["TASK-0039"]}
    response = write(backlog, "mcp://backlog/tasks/TASK-0038/depends_on", operation)
    assert refused(response, "validation_failed", 400)["field"] == "depends_on"


def test_the_failed_operation_of_the_spec_shows_where_it_looked(backlog: ApiClient) -> None:
    operation = {"type": "str_replace", "old_str": "## Old Sektion", "new_str": "x"}
    response = write(backlog, f"{TASK}/description", operation)
    details = refused(response, "operation_failed", 422)
    assert error_of(response)["message"] == "str_replace failed: old_str not found"
    assert (details["operation"], details["old_str"]) == ("str_replace", "## Old Sektion")
    assert details["searched_content_preview"] == DESCRIPTION
    assert details["nearest_line"] == {"line": 3, "text": "## Old Section"}


@pytest.mark.parametrize(
    ("part", "operation"),
    [
        ("/description", {"type": "str_replace", "old_str": "Old", "new_str": "New"}),
        ("/description", {"type": "delete", "content": "Old"}),
        ("/description", {"type": "delete", "content": "absent"}),
        ("/description", {"type": "insert", "line": 5, "content": "x"}),
        ("/description", {"type": "insert", "line": -1, "content": "x"}),
        ("/evidence", {"type": "array_insert", "index": 3, "value": "x"}),
        ("/evidence", {"type": "array_remove", "index": 2}),
        ("/evidence", {"type": "array_remove", "value": "absent"}),
    ],
)
def test_what_cannot_be_applied_fails_and_changes_nothing(
    backlog: ApiClient, part: str, operation: dict[str, Any]
) -> None:
    before = etag_of(backlog, TASK)
    assert (
        refused(write(backlog, TASK + part, operation), "operation_failed", 422)["operation"]
        == operation["type"]
    )
    assert etag_of(backlog, TASK) == before


@pytest.mark.parametrize("field", ["id", "type", "created_at", "updated_at", "version", "etag"])
def test_protected_fields_are_refused_wherever_they_are_written(
    backlog: ApiClient, field: str
) -> None:
    refused(
        write(backlog, f"{TASK}/{field}", {"type": "set", "value": "x"}), "permission_denied", 403
    )
    refused(
        write(backlog, TASK, {"type": "set", "field": field, "value": "x"}),
        "permission_denied",
        403,
    )
    refused(
        write(backlog, TASK, {"type": "merge", "value": {field: "x"}}), "permission_denied", 403
    )
    refused(
        write(backlog, TASK, {"type": "delete_field", "field": field}), "permission_denied", 403
    )
    refused(backlog.patch("/api/v1/tasks/TASK-0039/", {field: "x"}), "permission_denied", 403)
    refused(backlog.post("/api/v1/tasks/", {"title": "x", field: "x"}), "permission_denied", 403)


def test_archived_mirrored_and_unscoped_writes_are_denied(
    backlog: ApiClient, files: Path, alice: User, bob: User
) -> None:
    more = {"type": "append", "content": "..."}
    archived = write(backlog, "mcp://backlog/archive/TASK-0001/description", more)
    refused(archived, "permission_denied", 403)
    assert error_of(archived)["message"] == "Archived tasks are read-only"
    for writer, uri in (
        (backlog, "mcp://backlog/tasks/TASK-0001/description"),
        (backlog, "mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md"),
        (ApiClient(alice, scope="read"), f"{TASK}/description"),
        (ApiClient(bob), f"{TASK}/description"),
    ):
        refused(write(writer, uri, more), "permission_denied", 403)
    refused(write(ApiClient(), f"{TASK}/description", more), "unauthenticated", 401)


def test_a_stale_etag_is_answered_with_the_new_one_and_what_changed(backlog: ApiClient) -> None:
    uri = f"{TASK}/description"
    etag = etag_of(backlog, uri)
    first = write(backlog, uri, {"type": "append", "content": "mine\n"}, etag=etag)
    second = write(backlog, uri, {"type": "append", "content": "theirs\n"}, etag=etag)
    details = refused(second, "conflict", 409)
    assert details["current_etag"] == first.json()["etag"] and "+mine" in details["diff"]
    again = write(
        backlog, uri, {"type": "append", "content": "theirs\n"}, etag=details["current_etag"]
    )
    assert again.status_code == 200
    assert contents(backlog, uri).endswith("mine\ntheirs\n")


def test_the_etag_of_a_field_changes_with_that_field_alone(backlog: ApiClient) -> None:
    fields = ["title", "description", "status", "evidence", "labels"]
    before = {name: etag_of(backlog, f"{TASK}/{name}") for name in fields}
    whole = etag_of(backlog, TASK)
    write(backlog, f"{TASK}/status", {"type": "set", "value": "done"})
    after = {name: etag_of(backlog, f"{TASK}/{name}") for name in fields}
    assert [name for name in fields if before[name] != after[name]] == ["status"]
    assert etag_of(backlog, TASK) != whole
    moved_on = {"type": "append", "content": "x"}
    assert (
        write(backlog, f"{TASK}/description", moved_on, etag=before["description"]).status_code
        == 200
    )
    refused(write(backlog, f"{TASK}/title", moved_on, etag=after["status"]), "conflict", 409)


def test_without_an_etag_a_delta_applies_to_what_is_there(backlog: ApiClient) -> None:
    for word in ("human ", "agent "):
        write(backlog, f"{TASK}/description", {"type": "append", "content": word})
    assert contents(backlog, f"{TASK}/description") == f"{DESCRIPTION}human agent "


@pytest.mark.parametrize("etag", ["", "nonsense"])
def test_an_etag_that_was_never_given_out_is_no_permission(backlog: ApiClient, etag: str) -> None:
    refused(
        write(backlog, f"{TASK}/title", {"type": "set", "value": "x"}, etag=etag), "conflict", 409
    )
    refused(
        write(backlog, f"{TASK}/title", {"type": "set", "value": "x"}, etag=5),
        "validation_failed",
        400,
    )
    assert contents(backlog, f"{TASK}/title") == "Writable resources for auth"


def test_rest_takes_if_match_and_if_none_match(backlog: ApiClient) -> None:
    path = "/api/v1/tasks/TASK-0039/"
    etag = backlog.get(path)["ETag"]
    assert backlog.get(path, If_None_Match=etag).status_code == 304
    assert backlog.get(path, If_None_Match='"other"').status_code == 200
    assert read(backlog, TASK, If_None_Match=etag).status_code == 304
    assert backlog.patch(path, {"status": "done"}, If_Match=etag).status_code == 200
    for late in (
        backlog.patch(path, {"status": "open"}, If_Match=etag),
        backlog.delete(path, If_Match=etag),
        backlog.post(
            "/api/v1/write/",
            {"uri": TASK, "operation": {"type": "restore", "version": 1}},
            If_Match=etag,
        ),
    ):
        assert refused(late, "conflict", 409)["diff"]["status"] == {
            "before": "open",
            "after": "done",
        }
    upload = {"path": "/api/v1/resources/notes/new.md", "body": "text"}
    assert backlog.request("put", **upload, If_None_Match="*").status_code == 201
    kept = etag_of(backlog, "mcp://backlog/resources/notes/new.md")
    other = backlog.request("put", **(upload | {"body": "other"}), If_None_Match="*")
    assert refused(other, "conflict", 409)["current_etag"] == kept
    assert etag_of(backlog, "mcp://backlog/resources/notes/new.md") == kept


def test_the_history_of_the_spec_names_author_operation_and_etag(backlog: ApiClient) -> None:
    uri = f"{TASK}/description"
    etags = [etag_of(backlog, uri)]
    operations = [
        {"type": "str_replace", "old_str": "Old content", "new_str": "New"},
        {"type": "append", "content": "."},
    ]
    etags += [write(backlog, uri, operation).json()["etag"] for operation in operations]
    listed = backlog.get(f"/api/v1/versions/?uri={uri}").json()["results"]
    assert [(entry["version"], entry["etag"]) for entry in listed] == [
        (3, etags[2]),
        (2, etags[1]),
        (1, etags[0]),
    ]
    assert [entry["operation"] for entry in listed[:2]] == operations[::-1]
    assert {entry["author"] for entry in listed} == {"alice"} and all(
        entry["timestamp"] for entry in listed
    )
    refused(backlog.get("/api/v1/versions/?uri=mcp://backlog/tasks"), "invalid_uri", 400)
