"""Test REST for files: folders list, bytes go in and out, metadata is edited, mirrored files stay
unchanged.
"""

import base64
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.models import Resource
from tests.api.clients import ApiClient, error_of
from tests.factories import make_user

FILES = "/api/v1/resources/"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))


def put(
    client: ApiClient, path: str, content: bytes, content_type: str = "x/y", **headers: str
) -> Any:
    named = client._headers | {name.replace("_", "-"): value for name, value in headers.items()}
    return client._client.put(path, data=content, content_type=content_type, headers=named)


def test_a_text_is_created_read_edited_and_removed(alice: User, bob: User) -> None:
    client = ApiClient(alice)
    text = "---\ntitle: First\n---\n# First\n"
    created = client.post(FILES, {"path": "docs/adr/0001.md", "content": text})
    assert created.status_code == 201, created.content
    assert (created.json()["title"], created.json()["mime_type"]) == ("First", "text/markdown")
    reading = ApiClient(bob).get(f"{FILES}docs/adr/0001.md").json()
    assert (
        reading["contents"] == text and reading["uri"] == "mcp://backlog/resources/docs/adr/0001.md"
    )
    operation = {"type": "append", "content": "more\n"}
    answer = client.post(
        "/api/v1/write/", {"uri": reading["uri"], "operation": operation, "etag": reading["etag"]}
    )
    assert answer.status_code == 200 and "+more" in answer.json()["diff"]
    again = client.get(f"{FILES}docs/adr/0001.md").json()
    assert again["contents"].endswith("more\n")
    assert Resource.objects.get().size == len(again["contents"])
    assert client.delete(f"{FILES}docs/adr/0001.md").status_code == 204
    assert client.get(f"{FILES}docs/adr/0001.md").status_code == 404


def test_binary_goes_in_by_put_and_comes_out_whole(alice: User) -> None:
    client = ApiClient(alice)
    created = put(client, f"{FILES}img/logo.png", PNG, "image/png")
    assert (created.status_code, created.json()["mime_type"], created.json()["size"]) == (
        201,
        "image/png",
        len(PNG),
    )
    reading = client.get(f"{FILES}img/logo.png").json()
    assert reading["encoding"] == "base64" and base64.b64decode(reading["contents"]) == PNG
    raw = client.get(f"{FILES}img/logo.png?download=true")
    assert raw.content == PNG
    assert (
        raw["Content-Disposition"].startswith("attachment")
        and raw["X-Content-Type-Options"] == "nosniff"
    )
    replaced = put(
        client, f"{FILES}img/logo.png", PNG + b"x", "image/png", If_Match=created["ETag"]
    )
    assert (replaced.status_code, replaced.json()["version"]) == (200, 2)
    assert put(client, f"{FILES}img/logo.png", PNG, If_Match=created["ETag"]).status_code == 409


def test_a_put_without_a_byte_is_an_empty_file(alice: User) -> None:
    answer = put(ApiClient(alice), f"{FILES}docs/empty.txt", b"", "text/plain")
    assert (answer.status_code, answer.json()["size"]) == (201, 0)


def test_a_folder_lists_folders_then_files_and_pages(alice: User, bob: User, mallory: User) -> None:
    client = ApiClient(alice)
    for path in ("docs/b.md", "docs/a.md", "docs/adr/1.md", "docs/zzz/deep/2.md"):
        assert client.post(FILES, {"path": path, "content": "x"}).status_code == 201
    reading = ApiClient(bob).get(f"{FILES}docs").json()["contents"]
    names = [entry["path"].removeprefix("resources/docs/") for entry in reading["results"]]
    assert names == ["adr", "zzz", "a.md", "b.md"]
    assert reading["total"] == 4
    first = ApiClient(bob).get(f"{FILES}docs?limit=3").json()["contents"]
    rest = (
        ApiClient(bob).get(f"{FILES}docs?limit=3&cursor={first['next_cursor']}").json()["contents"]
    )
    assert [entry["path"] for entry in first["results"] + rest["results"]] == [
        e["path"] for e in reading["results"]
    ]
    assert ApiClient(bob).get(FILES).json()["results"][0]["path"] == "resources/docs"
    assert ApiClient(bob).get("/api/v1/artifacts/").json()["total"] == 0


def test_what_is_restricted_leaves_no_trace_of_file_or_folder(bob: User) -> None:
    dora = make_user("dora", "contributor", "security")
    ApiClient(dora).post(FILES, {"path": "secret/plan.md", "content": "x", "groups": ["security"]})
    assert ApiClient(dora).get(f"{FILES}secret/plan.md").status_code == 200
    assert ApiClient(bob).get(f"{FILES}secret/plan.md").status_code == 404
    assert ApiClient(bob).get(f"{FILES}secret").status_code == 404
    assert ApiClient(bob).get(FILES).json()["total"] == 0


def test_facts_are_patched_and_a_new_path_moves_the_file(alice: User) -> None:
    client = ApiClient(alice)
    client.post(FILES, {"path": "a.md", "content": "x"})
    patched = client.patch(f"{FILES}a.md", {"title": "A", "tags": ["t"]})
    assert patched.status_code == 200 and patched.json()["version"] == 2
    moved = client.patch(f"{FILES}a.md", {"path": "docs/b.md"})
    assert moved.json()["uri"] == "mcp://backlog/resources/docs/b.md"
    assert client.get(f"{FILES}a.md").status_code == 404
    assert Resource.objects.get().title == "A"


@pytest.mark.parametrize(
    "path", ["../x.md", "a/../../x.md", "a//b.md", "", "a\x00.md", "./a.md", "x" * 2000, 7]
)
def test_a_bad_path_is_refused(alice: User, path: Any) -> None:
    response = ApiClient(alice).post(FILES, {"path": path, "content": "x"})
    assert response.status_code == 400
    assert error_of(response)["code"] in {"validation_failed", "invalid_uri"}
    assert not Resource.objects.exists()


def test_bob_reads_and_mallory_sees_nothing(alice: User, bob: User, mallory: User) -> None:
    ApiClient(alice).post(FILES, {"path": "a.md", "content": "x"})
    assert ApiClient(bob).post(FILES, {"path": "b.md", "content": "x"}).status_code == 403
    assert put(ApiClient(bob), f"{FILES}a.md", b"y").status_code == 403
    outsider = ApiClient()
    outsider._client.force_login(mallory)
    assert (
        outsider.get(f"{FILES}a.md").status_code == outsider.get(f"{FILES}b.md").status_code == 404
    )


def test_a_local_file_answers_only_inside_a_root(bob: User, tmp_path: Path, settings: Any) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (root / "a.md").write_text("inside")
    (outside / "b.md").write_text("outside")
    (root / "link.md").symlink_to(outside / "b.md")
    settings.RESOURCE_ROOTS = {"docs": root}
    client = ApiClient(bob)
    assert client.get(f"/api/v1/resource/?uri=file://{root}/a.md").json()["contents"] == "inside"
    for path in (outside / "b.md", root / "link.md", Path("/etc/passwd"), root / "absent.md"):
        response = client.get(f"/api/v1/resource/?uri=file://{path}")
        assert (response.status_code, error_of(response)["code"]) == (404, "not_found")


def test_a_patch_that_fails_leaves_the_file_where_it_was(alice: User) -> None:
    client = ApiClient(alice)
    client.post(FILES, {"path": "rt/mv.md", "content": "text"})
    for refused in (
        {"path": "rt/moved.md", "title": 123},
        {"path": "rt/moved.md", "groups": ["strangers"]},
        {"path": "rt/moved.md", "tags": [" "]},
        {"title": "New", "path": "../out.md"},
    ):
        answer = client.patch(f"{FILES}rt/mv.md", refused)
        assert (answer.status_code, error_of(answer)["code"]) == (400, "validation_failed")
        assert client.get(f"{FILES}rt/moved.md").status_code == 404
        kept = client.get(f"{FILES}rt/mv.md").json()
        assert kept["version"] == 1 and Resource.objects.get().title == ""
    assert client.patch(f"{FILES}rt/mv.md?bogus=1", {"path": "rt/moved.md"}).status_code == 400
    assert client.get(f"{FILES}rt/mv.md").json()["version"] == 1


def test_a_patch_moves_and_renames_under_one_etag(alice: User) -> None:
    client = ApiClient(alice)
    etag = client.post(FILES, {"path": "rt/mv.md", "content": "text"})["ETag"]
    both = {"path": "rt/moved.md", "title": "Moved"}
    moved = client.patch(f"{FILES}rt/mv.md", both, If_Match=etag)
    assert (moved.status_code, moved.json()["uri"]) == (200, "mcp://backlog/resources/rt/moved.md")
    assert Resource.objects.get().title == "Moved"
    for stale in ({"path": "rt/mv.md", "title": "Back"}, {"title": "Back"}, {}):
        answer = client.patch(f"{FILES}rt/moved.md", stale, If_Match=etag)
        assert (answer.status_code, error_of(answer)["code"]) == (409, "conflict"), stale
    assert (Resource.objects.get().title, Resource.objects.get().path) == (
        "Moved",
        "resources/rt/moved.md",
    )
