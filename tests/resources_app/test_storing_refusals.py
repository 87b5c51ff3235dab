"""Test what storing rejects, and for which users: nothing is left behind."""

import pytest
from django.contrib.auth.models import Group, User
from django.test import override_settings

from resources_app.addresses import uris
from resources_app.errors import BacklogError, NotFound, PermissionDenied, ValidationFailed
from resources_app.models import Change, Folder, Resource
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor


def row(path: str) -> Resource:
    return Resource.objects.get(path=path)


def test_a_live_path_is_not_created_twice(alice: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/1.md", "a")
    with pytest.raises(ValidationFailed) as caught:
        stored_files.create_resource(as_actor(alice), "resources/1.md", "b")
    assert caught.value.details["field"] == "path"
    assert row("resources/1.md").content == "a"


def test_no_file_where_a_folder_is_and_no_folder_where_a_file_is(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/a/b.md", "1")
    stored_files.create_resource(actor, "resources/c", "1")
    for path in ("resources/a", "resources/c/d", "resources/c/d/e.md", "resources/a/b.md/x"):
        with pytest.raises(ValidationFailed):
            stored_files.create_resource(actor, path, "x")
        with pytest.raises(ValidationFailed):
            stored_files.create_resource(actor, "resources/free", "x")
            stored_files.move(actor, "resources/free", path)
    stored_files.remove(actor, "resources/a/b.md")
    stored_files.create_resource(actor, "resources/a", "now a file")


BAD_PATHS = [
    "", "/", "resources", "resources/", "tasks/a.md", "/resources/a.md", "resources//a.md", "resources/../a.md",
    "resources/./a", "resources/a/", "resources/a\\b", "resources/a\x00", "resources/a\nb", "resources/\ud800",
    "artifactsx/a", "resources/" + "x" * 1000, "resources/" + "д" * 900, "resources" + "/d" * 31,
    None, 7, b"resources/a",
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_bad_path_is_refused_and_leaves_nothing(alice: User, path: object) -> None:
    with pytest.raises(ValidationFailed):
        stored_files.create_resource(as_actor(alice), path, "x")  # type: ignore[arg-type]
    assert not Resource.objects.exists() and not Folder.objects.exists()


UNUSUAL_PATHS = [
    "resources/ü/ж — 漢.md",
    "resources/a b%2F#?.md",
    "artifacts/.hidden/x",
    "resources/…/~",
    "resources/a@v2",
]


@pytest.mark.parametrize("path", UNUSUAL_PATHS)
def test_unusual_but_honest_names_work(alice: User, path: str) -> None:
    assert stored_files.create_resource(as_actor(alice), path, "x").path == path
    assert (
        write_path.write(
            as_actor(alice), uris.build_path(path), {"type": "append", "content": "y"}
        )["version"]
        == 2
    )
    assert row(path).content == "xy"


@pytest.mark.parametrize(
    "content", ["a\x00b", "\ud800", "x" * 2_000_001, b"x" * 2_000_001, b"\xff" * 20_000_001]
)
def test_content_that_cannot_be_kept_is_refused(alice: User, content: str | bytes) -> None:
    with pytest.raises(ValidationFailed):
        stored_files.create_resource(as_actor(alice), "resources/a.dat", content)
    assert not Resource.objects.exists() and not Folder.objects.exists()


def test_a_declared_type_that_the_bytes_contradict_is_refused(alice: User) -> None:
    for mime_type in ("text/markdown", "nonsense", "a/b; charset=x", "text/" + "x" * 100):
        with pytest.raises(ValidationFailed):
            stored_files.create_resource(
                as_actor(alice), "resources/a", b"\xff\xfe", mime_type=mime_type
            )


def test_below_a_mount_nothing_is_stored(alice: User, tmp_path: object) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/free.md", "x")
    with override_settings(RESOURCE_ROOTS={"docs": tmp_path, "artifacts/logs": tmp_path}):
        for path in ("resources/docs/a.md", "resources/docs", "artifacts/logs/x/y"):
            with pytest.raises(PermissionDenied):
                stored_files.create_resource(actor, path, "x")
            with pytest.raises(PermissionDenied):
                stored_files.move(actor, "resources/free.md", path)
        stored_files.create_resource(actor, "resources/docs-too/a.md", "x")


def test_readers_and_strangers_write_nothing_and_strangers_see_nothing(
    alice: User, bob: User, mallory: User
) -> None:
    stored_files.create_resource(as_actor(alice), "resources/a.md", "x")
    for user in (bob, mallory):
        for attempt in (
            lambda actor: stored_files.create_resource(actor, "resources/b.md", "x"),
            lambda actor: stored_files.replace_content(actor, "resources/a.md", "y"),
            lambda actor: stored_files.move(actor, "resources/a.md", "resources/c.md"),
            lambda actor: stored_files.remove(actor, "resources/a.md"),
        ):
            with pytest.raises(PermissionDenied):
                attempt(as_actor(user))
    assert (
        Folder.objects.visible_to(bob).exists() and not Folder.objects.visible_to(mallory).exists()
    )
    assert row("resources/a.md").version == 1


def test_a_resource_limited_to_a_group_is_absent_for_others_also_as_an_archived_path(
    alice: User, carol: User
) -> None:
    crew = Group.objects.create(name="crew")
    carol.groups.add(crew)
    carol = User.objects.get(pk=carol.pk)
    stored_files.create_resource(as_actor(carol), "resources/secret/a.md", "x", groups=["crew"])
    assert (
        not Resource.objects.visible_to(alice).exists()
        and not Folder.objects.visible_to(alice).exists()
    )
    with pytest.raises(NotFound):
        stored_files.replace_content(as_actor(alice), "resources/secret/a.md", "y")
    stored_files.remove(as_actor(carol), "resources/secret/a.md")
    with pytest.raises(PermissionDenied):
        stored_files.create_resource(as_actor(alice), "resources/secret/a.md", "y")
    with pytest.raises(ValidationFailed):
        stored_files.create_resource(as_actor(alice), "resources/mine.md", "y", groups=["crew"])
    assert row("resources/secret/a.md").content == "x"


def test_creating_again_lifts_a_limit_only_for_those_who_saw_it(carol: User, bob: User) -> None:
    crew = Group.objects.create(name="crew")
    carol.groups.add(crew)
    actor = as_actor(User.objects.get(pk=carol.pk))
    stored_files.create_resource(actor, "resources/a.md", "x", groups=["crew"])
    stored_files.remove(actor, "resources/a.md")
    stored_files.create_resource(actor, "resources/a.md", "open now")
    kept = row("resources/a.md")
    assert (
        kept.groups == []
        and not kept.restricted
        and Resource.objects.visible_to(bob).live().get() == kept
    )


@pytest.mark.parametrize(
    "given",
    [
        {"tags": "abc"},
        {"tags": 5},
        {"tags": [1]},
        {"title": 5},
        {"title": "a\x00"},
        {"groups": {"a": 1}},
    ],
)
def test_facts_of_the_wrong_kind_are_refused(alice: User, given: dict[str, object]) -> None:
    with pytest.raises(ValidationFailed):
        stored_files.create_resource(as_actor(alice), "resources/a.md", "x", **given)  # type: ignore[arg-type]
    assert not Folder.objects.exists()


def test_what_fails_leaves_nothing_behind(alice: User) -> None:
    with pytest.raises(BacklogError):
        stored_files.create_resource(as_actor(alice), "resources/deep/a.md", "x", groups=["nobody"])
    with pytest.raises(BacklogError):
        stored_files.create_resource(as_actor(alice), "resources/deep/a.md", "x", title="t" * 300)
    assert not Folder.objects.exists() and not Change.objects.exists()
