"""Test files in the admin: stored ones are written through the write path, mirrored ones are
read-only.
"""

import hashlib

import pytest

from resources_app.models import Change, Resource
from resources_app.writing import stored_files, write_path
from tests.factories import system
from tests.resources_app.admin_client import enter, errors_of, make_admin, opened, url

pytestmark = pytest.mark.django_db


def make_file(path: str = "resources/notes.md", content: str | bytes = "one\ntwo\n") -> Resource:
    return stored_files.create_resource(system(), path, content)


def test_a_file_is_created_with_its_folder_and_history() -> None:
    client = enter(make_admin())
    posted = {
        "path": "resources/docs/plan.md",
        "title": "Plan",
        "tags": "a\r\nb",
        "content": "First\r\nSecond",
    }
    assert client.post(url("resource_add"), posted).status_code == 302
    file = Resource.objects.get()
    assert (file.path, file.title, file.tags) == ("resources/docs/plan.md", "Plan", ["a", "b"])
    assert (file.content, file.folder.path) == ("First\nSecond", "resources/docs")
    change = Change.objects.get()
    assert (change.action, change.via, change.author) == ("create", "admin", make_admin())


def test_a_path_outside_the_two_areas_is_refused_at_its_field() -> None:
    client = enter()
    answer = client.post(url("resource_add"), {"path": "../etc/passwd", "content": "x"})
    assert "path" in errors_of(answer)
    assert answer.context["adminform"].form["content"].value() == "x"
    assert not Resource.objects.exists()


def test_editing_the_text_keeps_size_and_hash_true() -> None:
    file = make_file()
    client = enter()
    posted = opened(client, "resource_change", file.pk)
    posted["content"] = posted["content"].replace("two", "2")
    assert client.post(url("resource_change", file.pk), posted).status_code == 302
    file.refresh_from_db()
    assert (file.content, file.size, file.version) == ("one\n2\n", 6, 2)
    assert file.sha256 == hashlib.sha256(b"one\n2\n").hexdigest()


def test_saving_an_untouched_file_writes_nothing() -> None:
    text, binary = make_file(), make_file("resources/logo.bin", b"\x00\x01\xff")
    client = enter()
    for file in (text, binary):
        posted = opened(client, "resource_change", file.pk)
        assert client.post(url("resource_change", file.pk), posted).status_code == 302
        file.refresh_from_db()
        assert file.version == 1


def test_a_binary_file_is_described_without_its_bytes() -> None:
    file = make_file("resources/logo.bin", b"\x00\x01\xff")
    client = enter()
    posted = opened(client, "resource_change", file.pk) | {"description": "The logo"}
    assert "content" not in posted
    assert client.post(url("resource_change", file.pk), posted).status_code == 302
    file.refresh_from_db()
    assert (file.description, bytes(file.blob or b""), file.version) == (
        "The logo",
        b"\x00\x01\xff",
        2,
    )


def test_a_stale_form_is_refused() -> None:
    file = make_file()
    client = enter()
    posted = opened(client, "resource_change", file.pk) | {"content": "mine"}
    write_path.write(
        system(), "mcp://backlog/resources/notes.md", {"type": "append", "content": "three\n"}
    )
    answer = client.post(url("resource_change", file.pk), posted)
    assert "was changed since you opened it" in errors_of(answer)["__all__"][0]
    assert "three" in answer.content.decode()
    file.refresh_from_db()
    assert file.content == "one\ntwo\nthree\n"


def test_a_mirrored_file_is_shown_and_cannot_be_changed() -> None:
    file = make_file()
    client = enter()
    posted = opened(client, "resource_change", file.pk) | {"title": "Changed"}
    Resource.objects.filter(pk=file.pk).update(root="docs")
    assert "mirror of docs" in client.get(url("resource_change", file.pk)).content.decode()
    assert client.post(url("resource_change", file.pk), posted).status_code == 403


def test_a_file_has_a_history_and_goes_back_in_it() -> None:
    file = make_file()
    write_path.write(
        system(), "mcp://backlog/resources/notes.md", {"type": "append", "content": "three\n"}
    )
    client = enter()
    page = client.get(url("resource_history", file.pk))
    assert "+three" in page.content.decode()
    client.post(url("resource_restore", file.pk, 1), {"etag": page.context["etag"]})
    file.refresh_from_db()
    assert (file.content, file.version) == ("one\ntwo\n", 3)


def test_a_file_is_archived_and_brought_back() -> None:
    file = make_file()
    client = enter()
    client.post(url("resource_archive", file.pk))
    file.refresh_from_db()
    assert file.archived_at
    client.post(url("resource_unarchive", file.pk))
    file.refresh_from_db()
    assert file.archived_at is None
