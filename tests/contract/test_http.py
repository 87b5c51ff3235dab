"""Test contract section 9 and adr-0006: the REST paths, and GET /mcp/resource."""

from pathlib import Path
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.api.clients import ApiClient, error_of
from tests.contract.calling import TASK, contents, refused
from tests.contract.conftest import DESCRIPTION

ADR = "mcp://backlog/resources/docs/adr/0004-mcp-resource-viewer.md"
READABLE = [
    "/api/v1/tasks/", "/api/v1/epics/", "/api/v1/resources/", "/api/v1/artifacts/", "/api/v1/comments/",
    "/api/v1/tasks/TASK-0039/", "/api/v1/epics/EPIC-0002/", "/api/v1/epics/EPIC-0002/tasks/",
    "/api/v1/search/?q=auth", "/api/v1/context/?id=TASK-0039", f"/api/v1/resource/?uri={TASK}",
    f"/api/v1/versions/?uri={TASK}", "/api/v1/changes/?since=", f"/mcp/resource?uri={TASK}",
    "/api/schema/", "/api/docs/",
]  # fmt: skip


@pytest.mark.parametrize("path", READABLE)
def test_viewers_read_every_path_and_strangers_none(
    backlog: ApiClient, bob: User, path: str
) -> None:
    assert ApiClient(bob).get(path).status_code == 200
    refused(ApiClient().get(path), "unauthenticated", 401)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/.well-known/oauth-protected-resource"])
def test_health_and_discovery_are_for_everybody(db: None, path: str) -> None:
    assert ApiClient().get(path).status_code == 200


@pytest.mark.parametrize(
    "path", [path for path in READABLE if path.startswith("/api/v1/") or "/mcp/" in path]
)
def test_no_path_ignores_a_parameter_it_does_not_know(backlog: ApiClient, path: str) -> None:
    details = refused(
        backlog.get(f"{path}{'&' if '?' in path else '?'}colour=red"), "validation_failed", 400
    )
    assert details["field"] == "colour" and isinstance(details["allowed_values"], list)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/api/v1/tasks/", {"title": "x"}),
        ("patch", "/api/v1/tasks/TASK-0039/", {"title": "x"}),
        ("delete", "/api/v1/tasks/TASK-0039/", None),
        ("post", "/api/v1/epics/", {"title": "x"}),
        ("post", "/api/v1/comments/", {"item_id": "TASK-0039", "body": "x"}),
        ("post", "/api/v1/resources/", {"path": "a.md", "content": "x"}),
        ("put", "/api/v1/artifacts/a.md", "x"),
        ("post", "/api/v1/write/", {"uri": TASK, "operation": {"type": "restore", "version": 1}}),
        (
            "post",
            "/api/v1/write_batch/",
            {"operations": [{"uri": TASK, "operation": {"type": "restore", "version": 1}}]},
        ),
    ],
)
def test_viewers_and_read_tokens_write_nothing(
    backlog: ApiClient, alice: User, bob: User, method: str, path: str, body: object
) -> None:
    for reader in (ApiClient(bob), ApiClient(alice, scope="read")):
        refused(reader.request(method, path, body), "permission_denied", 403)
    refused(ApiClient().request(method, path, body), "unauthenticated", 401)
    assert backlog.request(method, path, body).status_code in {200, 201, 204}


def test_a_browser_session_writes_with_its_csrf_token_alone(
    backlog: ApiClient, alice: User
) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(alice)
    sent = {"path": "/api/v1/tasks/", "data": {"title": "x"}, "content_type": "application/json"}
    assert browser.post(**sent).status_code == 403
    page = browser.get("/")
    assert page.status_code == 200
    token = browser.cookies["csrftoken"].value
    assert browser.post(**sent, headers={"X-CSRFToken": token}).status_code == 201


@pytest.mark.parametrize(
    ("uri", "content", "frontmatter", "mime_type", "path", "ext"),
    [
        (ADR, "# MCP resource viewer\n", {"title": "The viewer", "tags": ["adr"]}, "text/markdown",
         "adr/0004-mcp-resource-viewer.md", "md"),
        ("mcp://backlog/resources/viewer/components/resource-viewer.ts", "export {};\n", {}, "text/typescript",
         "components/resource-viewer.ts", "ts"),
        ("mcp://backlog/artifacts/task-0060/artifact.md", "# Artifact\n", {}, "text/markdown",
         "artifacts/task-0060/artifact.md", "md"),
        (f"{TASK}/description", DESCRIPTION, {}, "text/markdown", "tasks/TASK-0039/description", "md"),
        (f"{TASK}/title", "Writable resources for auth", {}, "text/plain", "tasks/TASK-0039/title", "txt"),
    ],
)  # fmt: skip
def test_the_viewers_form_of_a_resource(
    backlog: ApiClient,
    files: Path,
    uri: str,
    content: str,
    frontmatter: dict[str, object],
    mime_type: str,
    path: str,
    ext: str,
) -> None:
    assert backlog.get(f"/mcp/resource?uri={quote(uri)}").json() == {
        "content": content, "frontmatter": frontmatter, "type": mime_type, "path": path, "uri": uri, "ext": ext,
    }  # fmt: skip


def test_the_viewers_form_of_a_task_and_its_file(backlog: ApiClient) -> None:
    file = backlog.get(f"/mcp/resource?uri={TASK}/file").json()
    assert (file["frontmatter"]["id"], file["content"].rstrip(), file["ext"]) == (
        "TASK-0039",
        DESCRIPTION.rstrip(),
        "md",
    )
    task = backlog.get(f"/mcp/resource?uri={TASK}").json()
    assert (task["type"], task["ext"]) == (
        "application/json",
        "json",
    ) and '"id": "TASK-0039"' in task["content"]


@pytest.mark.parametrize("fragment", ["", "#L1-L2", "#a-section"])
def test_both_addresses_of_a_file_show_its_path_below_its_root(
    client: ApiClient, files: Path, fragment: str
) -> None:
    for address in (f"file://{files}/docs/adr/0004-mcp-resource-viewer.md", ADR):
        shown = client.get(f"/mcp/resource?uri={quote(address + fragment)}").json()
        assert (shown["path"], shown["content"]) == (
            "adr/0004-mcp-resource-viewer.md",
            "# MCP resource viewer\n",
        )
        assert shown["uri"] == address + fragment


@pytest.mark.parametrize(
    ("uri", "code", "status"),
    [
        ("", "invalid_uri", 400),
        ("http://example.org/", "invalid_uri", 400),
        ("mcp://elsewhere/tasks/TASK-0001", "invalid_uri", 400),
        ("mcp://backlog/tasks/TASK-9999", "not_found", 404),
        ("mcp://backlog/resources/none.md", "not_found", 404),
        ("file:///etc/passwd", "not_found", 404),
    ],
)
def test_the_viewers_errors_are_those_of_the_contract(
    backlog: ApiClient, uri: str, code: str, status: int
) -> None:
    refused(backlog.get(f"/mcp/resource?uri={quote(uri)}"), code, status)


@pytest.mark.django_db(
    transaction=True, serialized_rollback=True
)  # the feed waits for running transactions to end
def test_the_feed_goes_on_where_a_caller_stopped(backlog: ApiClient) -> None:
    seen = backlog.get("/api/v1/changes/?since=").json()
    assert {change["id"] for change in seen["results"]} >= {"TASK-0039", "EPIC-0002", "TASK-0001"}
    backlog.patch("/api/v1/tasks/TASK-0039/", {"status": "done"})
    [change] = contents(backlog, f"mcp://backlog/changes?since={seen['next_cursor']}")["results"]
    assert (change["id"], change["fields"], change["author"], change["via"]) == (
        "TASK-0039",
        ["status"],
        "alice",
        "rest",
    )


@pytest.mark.parametrize("method", ["put", "post"])
def test_a_method_that_is_not_there_has_the_same_error_body(
    backlog: ApiClient, method: str
) -> None:
    response = backlog.request(method, "/api/v1/tasks/TASK-0039/", {"title": "x"})
    assert (response.status_code, error_of(response)["code"]) == (405, "invalid_operation")
