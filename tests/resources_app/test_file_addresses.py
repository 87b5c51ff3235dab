"""Test the addresses of files: content, versions, schema, the archive and file:// URIs."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from resources_app.errors import BacklogError, InvalidOperation, NotFound, PermissionDenied
from resources_app.interchange.scan import scan
from resources_app.models import Change, Resource
from resources_app.reading import watching
from resources_app.reading.by_address import read
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_user

pytestmark = pytest.mark.django_db

FILE = "mcp://backlog/resources/docs/a.md"


@pytest.fixture
def file(alice: User) -> str:
    stored_files.create_resource(as_actor(alice), "resources/docs/a.md", "# A\n")
    write_path.write(as_actor(alice), FILE, {"type": "append", "content": "more\n"})
    return FILE


def test_a_file_has_versions_as_a_task_has(alice: User, file: str) -> None:
    actor = as_actor(alice)
    history = read(actor, f"{file}/versions").contents
    assert [row["version"] for row in history["results"]] == [2, 1]
    assert history["results"][0]["etag"] == read(actor, file).etag
    client = ApiClient(alice)
    assert client.get(f"/api/v1/versions/?uri={file}").json() == history
    assert client.get(f"/api/v1/resource/?uri={file}/versions").json()["contents"] == history
    page = read(actor, f"{file}/versions?limit=1").contents
    assert page["next_cursor"] == "2"
    with pytest.raises(NotFound):
        read(actor, f"{file}/versions@v1")
    with pytest.raises(NotFound):
        read(actor, "mcp://backlog/resources/docs/versions")


def test_the_schema_of_a_file_says_what_the_caller_may_write(
    alice: User, bob: User, file: str
) -> None:
    schema = read(as_actor(alice), f"{file}/schema").contents
    assert (schema["uri"], schema["type"]) == (file, "text/markdown")
    assert schema["operations"] == list(read(as_actor(alice), file).operations)
    assert set(schema["properties"]) == {"content", "title", "description", "tags", "groups"}
    assert schema["properties"]["title"]["maxLength"] == 200
    for name in ("title", "tags"):
        field = schema["properties"][name]
        assert field["writable"] and field["uri"] == file
        operation = {"type": "set", "field": name, "value": ["x"] if name == "tags" else "x"}
        assert "set" in field["operations"] and write_path.write(as_actor(alice), file, operation)
    seen = read(as_actor(bob), f"{file}/schema").contents
    assert seen["operations"] == [] and not seen["properties"]["content"]["writable"]
    stored_files.create_resource(as_actor(alice), "resources/p.png", b"\x89PNG\r\n\x1a\n\x00")
    binary = read(as_actor(alice), "mcp://backlog/resources/p.png/schema").contents
    assert not binary["properties"]["content"]["writable"]
    assert binary["properties"]["title"]["writable"] and "append" not in binary["operations"]
    with pytest.raises(BacklogError):
        read(as_actor(alice), f"{file}/schema?limit=1")


@pytest.mark.parametrize("part", ["versions", "schema"])
def test_what_is_below_a_file_can_only_be_read(alice: User, file: str, part: str) -> None:
    with pytest.raises(InvalidOperation):
        write_path.write(as_actor(alice), f"{file}/{part}", {"type": "append", "content": "x"})
    with pytest.raises(BacklogError):
        stored_files.create_resource(as_actor(alice), f"resources/docs/a.md/{part}", "x")


@pytest.mark.parametrize("name", ["versions", "schema"])
def test_a_file_with_the_name_of_a_part_is_a_file_like_any_other(alice: User, name: str) -> None:
    actor, uri = as_actor(alice), f"mcp://backlog/resources/docs/{name}"
    stored_files.create_resource(actor, f"resources/docs/{name}", "one\n")
    write_path.write(actor, uri, {"type": "append", "content": "two\n"})
    change = Change.objects.latest("pk")
    reading = read(actor, uri)
    assert (reading.contents, reading.version) == ("one\ntwo\n", 2)
    assert read(actor, f"{uri}@v1").contents == "one\n"
    assert watching.may_watch(actor, uri) and watching.matches(change, uri)
    assert watching.describe(change, uri)["etag"] == reading.etag
    assert len(read(actor, f"{uri}/versions").contents["results"]) == 2
    folder = read(actor, "mcp://backlog/resources/docs").contents
    assert [row["uri"] for row in folder["results"]] == [uri]
    stored_files.create_resource(actor, f"resources/{name}/inner.md", "x")
    [inner] = read(actor, f"mcp://backlog/resources/{name}").contents["results"]
    assert inner["path"] == f"resources/{name}/inner.md"


def test_a_watcher_of_a_history_is_notified_about_its_file_alone(alice: User, file: str) -> None:
    change = Change.objects.latest("pk")
    assert watching.matches(change, f"{file}/versions")
    assert watching.describe(change, f"{file}/versions")["etag"] is None
    stored_files.create_resource(as_actor(alice), "resources/docs/b.md", "b")
    assert not watching.matches(Change.objects.latest("pk"), f"{file}/versions")
    with pytest.raises(InvalidOperation):
        watching.may_watch(as_actor(alice), f"{file}/schema")


def test_an_archived_file_is_read_in_the_archive(alice: User, bob: User, file: str) -> None:
    archived = file.replace("backlog/", "backlog/archive/")
    with pytest.raises(NotFound):
        read(as_actor(bob), archived)
    stored_files.remove(as_actor(alice), "resources/docs/a.md")
    with pytest.raises(NotFound):
        read(as_actor(bob), file)
    reading = read(as_actor(alice), archived)
    assert reading.contents == "# A\nmore\n"
    assert not reading.metadata()["capabilities"]["writable"]
    assert read(as_actor(bob), f"{archived}@v1").contents == "# A\n"
    versions = read(as_actor(bob), f"{archived}/versions").contents["results"]
    assert [row["action"] for row in versions] == ["archive", "update", "create"]
    assert read(as_actor(alice), f"{archived}/schema").contents["operations"] == []
    listed = read(as_actor(bob), "mcp://backlog/archive/resources").contents
    assert [row["uri"] for row in listed["results"]] == [archived] and listed["total"] == 1
    change = Change.objects.latest("pk")
    for uri in (archived, f"{archived}/versions", "mcp://backlog/archive/resources"):
        assert watching.matches(change, uri), uri
    assert not watching.matches(change, "mcp://backlog/archive/artifacts")
    with pytest.raises(PermissionDenied):
        write_path.write(as_actor(alice), archived, {"type": "append", "content": "x"})
    stored_files.create_resource(as_actor(alice), "resources/docs/a.md", "again")
    with pytest.raises(NotFound):
        read(as_actor(bob), archived)


def test_the_archive_of_files_is_paged_by_path(alice: User) -> None:
    for name in ("file", "b", "c"):
        stored_files.create_resource(as_actor(alice), f"artifacts/{name}", name)
        stored_files.remove(as_actor(alice), f"artifacts/{name}")
    shown, cursor = [], ""
    while cursor is not None:
        uri = f"mcp://backlog/archive/artifacts?limit=1&cursor={cursor}"
        page = read(as_actor(alice), uri).contents
        shown += [row["path"] for row in page["results"]]
        cursor = page["next_cursor"]
    assert shown == ["artifacts/b", "artifacts/c", "artifacts/file"] and page["total"] == 3
    assert read(as_actor(alice), "mcp://backlog/archive/artifacts/file").contents == "file"


def test_a_mirrored_file_limited_to_a_group_is_hidden_at_its_local_address_too(
    alice: User, bob: User, mallory: User, tmp_path: Path, settings: Any
) -> None:
    (tmp_path / "secret.md").write_text("Secret")
    (tmp_path / "open.md").write_text("Open")
    settings.RESOURCE_ROOTS = {"disk": tmp_path}
    scan()
    alice = make_user("alice", "contributor", "security")
    rows = Resource.objects.filter(path="resources/disk/secret.md")
    rows.update(groups=["security"], restricted=True)
    rows.get().readers.set(Group.objects.filter(name="security"))
    assert outcomes(tmp_path / "open.md", alice, bob, mallory) == ["Open", "Open", None]
    assert outcomes(tmp_path / "secret.md", alice, bob, mallory) == ["Secret", None, None]
    assert refusal(bob, tmp_path / "secret.md") == refusal(bob, tmp_path / "absent.md")


def outcomes(path: Path, *users: User) -> list[str | None]:
    return [contents_for(user, path) for user in users]


def contents_for(user: User, path: Path) -> str | None:
    try:
        return str(read(as_actor(user), f"file://{path}").contents)
    except NotFound:
        return None


def refusal(user: User, path: Path) -> str:
    with pytest.raises(NotFound) as caught:
        read(as_actor(user), f"file://{path}")
    return str(caught.value.as_json()).replace(path.name, "")
