"""Test stored resources: created, uploaded again, moved, removed and recreated, with history,
folders, permissions.
"""

import hashlib

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.addresses import uris
from resources_app.errors import BacklogError, Conflict, OperationFailed, ValidationFailed
from resources_app.history import revisions
from resources_app.history.etags import make_etag
from resources_app.models import Change, Folder, Resource, Revision
from resources_app.writing import stored_files, undo, write_path
from tests.factories import as_actor

ADR = (
    "---\ntitle: 'Use SQLite'\ndescription: Why\ntags: [db, adr]\nstatus: accepted\n---\n#"
    " Heading\n\nText\n"
)
PNG = b"\x89PNG\r\n\x1a\n\x00\x01"


def folder_paths() -> list[str]:
    return sorted(Folder.objects.values_list("path", flat=True))


def row(path: str) -> Resource:
    return Resource.objects.get(path=path)


def test_a_markdown_file_tells_its_title_description_and_tags(alice: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/adr/1.md", ADR)
    kept = row("resources/adr/1.md")
    assert (kept.title, kept.description, kept.tags) == ("Use SQLite", "Why", ["db", "adr"])
    assert kept.frontmatter == {
        "title": "Use SQLite",
        "description": "Why",
        "tags": ["db", "adr"],
        "status": "accepted",
    }
    assert (kept.mime_type, kept.content, kept.root) == ("text/markdown", ADR, "")
    assert (kept.size, kept.sha256) == (len(ADR.encode()), hashlib.sha256(ADR.encode()).hexdigest())


def test_what_is_given_counts_more_than_the_frontmatter(alice: User) -> None:
    kept = stored_files.create_resource(
        as_actor(alice), "resources/1.md", ADR, title="Mine", tags=["x"], description="D"
    )
    assert (kept.title, kept.tags, kept.description) == ("Mine", ["x"], "D")


def test_the_first_heading_is_the_title_of_a_markdown_file_without_one(alice: User) -> None:
    assert (
        stored_files.create_resource(
            as_actor(alice), "resources/1.md", "Intro\n\n# The *plan* #\n"
        ).title
        == "The *plan*"
    )
    assert (
        stored_files.create_resource(as_actor(alice), "resources/1.py", "# a comment\n").title == ""
    )


def test_creating_leaves_a_change_and_a_whole_revision(alice: User) -> None:
    kept = stored_files.create_resource(
        as_actor(alice, via="mcp", agent="bot"), "artifacts/run/log.txt", "hello"
    )
    change = Change.objects.get(kind="resource", object_id=kept.pk)
    assert (change.action, change.author, change.via, change.agent) == (
        "create",
        alice,
        "mcp",
        "bot",
    )
    assert change.uri == "mcp://backlog/artifacts/run/log.txt"
    assert revisions.document_at("resource", kept.pk, 1)["content"] == "hello"


def test_folders_follow_the_files(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/a/b/one.md", "1")
    stored_files.create_resource(actor, "resources/a/two.md", "2")
    assert folder_paths() == ["resources", "resources/a", "resources/a/b"]
    assert row("resources/a/b/one.md").folder.path == "resources/a/b"
    assert (
        sorted(row("resources/a/b/one.md").ancestors.values_list("path", flat=True))
        == folder_paths()
    )
    assert Folder.objects.get(path="resources/a/b").parent == Folder.objects.get(path="resources/a")


def test_a_binary_file_is_kept_byte_for_byte(alice: User) -> None:
    kept = stored_files.create_resource(as_actor(alice), "artifacts/x.png", PNG)
    kept = row(kept.path)
    assert (kept.content, bytes(kept.blob or b""), kept.mime_type) == (None, PNG, "image/png")
    assert (kept.size, kept.sha256) == (len(PNG), hashlib.sha256(PNG).hexdigest())


def test_uploading_a_text_again_makes_a_version_and_the_facts_follow(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/1.md", ADR)
    stored_files.replace_content(
        actor, kept.path, ADR.replace("Use SQLite", "Use both").replace("adr]", "x]")
    )
    kept = row(kept.path)
    assert (kept.version, kept.title, kept.tags, kept.frontmatter["title"]) == (
        2,
        "Use both",
        ["db", "x"],
        "Use both",
    )
    assert kept.size == len((kept.content or "").encode())
    assert revisions.document_at("resource", kept.pk, 1)["content"] == ADR
    assert revisions.document_at("resource", kept.pk, 2)["title"] == "Use both"


def test_a_title_that_somebody_gave_stays_when_the_text_changes(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/1.md", ADR, title="Mine")
    stored_files.replace_content(actor, kept.path, ADR.replace("Use SQLite", "Other"))
    assert row(kept.path).title == "Mine"


def test_uploading_the_same_bytes_again_changes_nothing(alice: User) -> None:
    actor = as_actor(alice)
    for path, content in (("resources/1.md", ADR), ("resources/1.png", PNG)):
        stored_files.create_resource(actor, path, content)
        stored_files.replace_content(actor, path, content)
        assert row(path).version == 1
    assert Change.objects.count() == 2


def test_a_binary_file_is_uploaded_again_and_can_become_text_and_back(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "artifacts/x.dat", PNG)
    stored_files.replace_content(actor, "artifacts/x.dat", PNG + b"\x00more")
    assert bytes(row("artifacts/x.dat").blob or b"") == PNG + b"\x00more"
    stored_files.replace_content(actor, "artifacts/x.dat", "now text")
    kept = row("artifacts/x.dat")
    assert (kept.content, kept.blob, kept.version, kept.mime_type) == (
        "now text",
        None,
        3,
        "text/plain",
    )
    stored_files.replace_content(actor, "artifacts/x.dat", PNG)
    kept = row("artifacts/x.dat")
    assert (kept.content, bytes(kept.blob or b""), kept.version) == (None, PNG, 4)
    assert Revision.objects.filter(object_id=kept.pk, kind="resource").count() == 4


def test_a_given_mime_type_survives_an_upload(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/notes", "x", mime_type="text/x-rst")
    stored_files.replace_content(actor, "resources/notes", "y")
    assert row("resources/notes").mime_type == "text/x-rst"


def test_a_stale_etag_uploads_and_moves_nothing(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/1.md", "a")
    etag = make_etag(kept.ref, 1)
    stored_files.replace_content(actor, kept.path, "b", etag)
    with pytest.raises(Conflict):
        stored_files.replace_content(actor, kept.path, "c", etag)
    with pytest.raises(Conflict):
        stored_files.move(actor, kept.path, "resources/2.md", etag)
    with pytest.raises(Conflict):
        stored_files.remove(actor, kept.path, etag)
    assert row(kept.path).content == "b"


def test_moving_keeps_the_history_and_takes_the_folders_along(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/old/deep/a.txt", ADR)
    moved = stored_files.move(actor, kept.path, "artifacts/new/a.md")
    assert (
        moved.pk == kept.pk
        and not Resource.objects.filter(path="resources/old/deep/a.txt").exists()
    )
    assert folder_paths() == ["artifacts", "artifacts/new"]
    found = row("artifacts/new/a.md")
    assert (found.version, found.folder.path, found.mime_type) == (
        2,
        "artifacts/new",
        "text/markdown",
    )
    assert found.frontmatter["title"] == "Use SQLite"
    assert sorted(found.ancestors.values_list("path", flat=True)) == ["artifacts", "artifacts/new"]
    assert revisions.document_at("resource", found.pk, 1)["path"] == "resources/old/deep/a.txt"
    change = Change.objects.get(object_id=found.pk, action="move")
    assert change.uri == "mcp://backlog/artifacts/new/a.md"
    assert change.operation == {
        "type": "move",
        "from": "resources/old/deep/a.txt",
        "to": "artifacts/new/a.md",
    }


def test_a_binary_file_moves_with_its_bytes_and_type(alice: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/x.png", PNG)
    stored_files.move(as_actor(alice), "resources/x.png", "artifacts/y")
    kept = row("artifacts/y")
    assert (kept.content, bytes(kept.blob or b""), kept.mime_type, kept.version) == (
        None,
        PNG,
        "image/png",
        2,
    )


def test_moving_leaves_folders_that_still_hold_something_even_archived(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/a/one.md", "1")
    stored_files.create_resource(actor, "resources/a/two.md", "2")
    stored_files.remove(actor, "resources/a/two.md")
    stored_files.move(actor, "resources/a/one.md", "resources/one.md")
    assert folder_paths() == ["resources", "resources/a"]


def test_nothing_moves_onto_something_else(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/a.md", "1")
    stored_files.create_resource(actor, "resources/b.md", "2")
    with pytest.raises(ValidationFailed):
        stored_files.move(actor, "resources/a.md", "resources/b.md")
    stored_files.remove(actor, "resources/b.md")
    with pytest.raises(ValidationFailed):
        stored_files.move(actor, "resources/a.md", "resources/b.md")
    assert stored_files.move(actor, "resources/a.md", "resources/a.md").version == 1


def test_a_file_can_move_below_its_own_name(alice: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/a", "1")
    stored_files.move(as_actor(alice), "resources/a", "resources/a/b")
    assert folder_paths() == ["resources", "resources/a"]


def test_a_removed_path_is_created_again_as_a_new_version_of_the_same_thing(alice: User) -> None:
    actor = as_actor(alice)
    first = stored_files.create_resource(actor, "resources/a/1.md", ADR, title="Mine", tags=["x"])
    stored_files.remove(actor, first.path)
    assert not Folder.objects.visible_to(alice).exists()
    again = stored_files.create_resource(actor, first.path, "# New\n")
    assert again.pk == first.pk
    kept = row(first.path)
    assert (kept.version, kept.archived_at, kept.content, kept.title, kept.tags) == (
        3,
        None,
        "# New\n",
        "New",
        [],
    )
    assert kept.frontmatter == {} and kept.size == 6
    assert revisions.document_at("resource", kept.pk, 1)["content"] == ADR
    assert Folder.objects.visible_to(alice).filter(path="resources/a").exists()


def test_a_removed_text_comes_back_as_binary_and_the_other_way_round(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/x.bin", "text")
    stored_files.remove(actor, "resources/x.bin")
    stored_files.create_resource(actor, "resources/x.bin", PNG)
    assert (row("resources/x.bin").content, bytes(row("resources/x.bin").blob or b"")) == (
        None,
        PNG,
    )
    stored_files.remove(actor, "resources/x.bin")
    stored_files.create_resource(actor, "resources/x.bin", "text")
    assert (row("resources/x.bin").content, row("resources/x.bin").blob) == ("text", None)


# Texts edited through the write path


def test_an_edit_of_the_text_takes_size_hash_frontmatter_and_title_along(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/1.md", ADR)
    uri = uris.build_path(kept.path)
    write_path.write(
        actor, uri, {"type": "str_replace", "old_str": "'Use SQLite'", "new_str": "Use ж: both"}
    )
    write_path.write(
        actor, uri, {"type": "str_replace", "old_str": "accepted", "new_str": "rejected"}
    )
    kept = row(kept.path)
    text = ADR.replace("'Use SQLite'", "Use ж: both").replace("accepted", "rejected")
    assert (kept.content, kept.size, kept.sha256) == (
        text,
        len(text.encode()),
        hashlib.sha256(text.encode()).hexdigest(),
    )
    assert (kept.title, kept.frontmatter["title"], kept.frontmatter["status"]) == (
        "Use ж: both",
        "Use ж: both",
        "rejected",
    )
    write_path.write(actor, uri, {"type": "restore", "version": 1})
    kept = row(kept.path)
    assert (kept.content, kept.title, kept.frontmatter["status"]) == (ADR, "Use SQLite", "accepted")


def test_a_binary_file_is_not_edited_as_text_and_keeps_its_bytes(alice: User) -> None:
    actor = as_actor(alice)
    kept = stored_files.create_resource(actor, "resources/x.png", PNG)
    stored_files.replace_content(actor, kept.path, PNG + b"2")
    uri = uris.build_path(kept.path)
    for operation in (
        {"type": "append", "content": "x"},
        {"type": "set", "value": "x"},
        {"type": "set", "field": "content", "value": "x"},
        {"type": "merge", "value": {"content": "x"}},
        {"type": "delete_field", "field": "content"},
        {"type": "restore", "version": 1},
    ):
        with pytest.raises(BacklogError):
            write_path.write(actor, uri, operation)
        assert (row(kept.path).content, bytes(row(kept.path).blob or b"")) == (None, PNG + b"2"), (
            operation
        )
    write_path.write(actor, uri, {"type": "set", "field": "title", "value": "Logo"})
    kept = row(kept.path)
    assert (kept.title, kept.content, bytes(kept.blob or b"")) == ("Logo", None, PNG + b"2")


def test_a_text_is_not_restored_to_a_version_that_was_binary(alice: User) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/x.dat", PNG)
    stored_files.replace_content(actor, "resources/x.dat", "text")
    with pytest.raises(BacklogError):
        write_path.write(actor, "mcp://backlog/resources/x.dat", {"type": "restore", "version": 1})
    assert row("resources/x.dat").content == "text"


def test_archiving_and_unarchiving_by_address_keeps_the_rules(
    alice: User, tmp_path: object
) -> None:
    actor = as_actor(alice)
    stored_files.create_resource(actor, "resources/a", "1")
    stored_files.remove(actor, "resources/a")
    stored_files.create_resource(actor, "resources/a/b", "2")
    with pytest.raises(ValidationFailed):
        write_path.unarchive(actor, "mcp://backlog/resources/a")
    stored_files.remove(actor, "resources/a/b")
    write_path.unarchive(actor, "mcp://backlog/resources/a")


def test_undoing_a_move_moves_it_back(alice: User) -> None:
    actor = as_actor(alice, agent="bot")
    start = timezone.now()
    stored_files.create_resource(as_actor(alice), "resources/a/x.md", "1")
    stored_files.move(actor, "resources/a/x.md", "resources/b/x.md")
    undo.undo_run(actor, "bot", start.isoformat(), timezone.now().isoformat())
    assert row("resources/a/x.md").folder.path == "resources/a"
    assert folder_paths() == ["resources", "resources/a"]


def test_a_move_is_not_undone_onto_another_file_and_lost_bytes_are_not_promised(
    alice: User,
) -> None:
    actor = as_actor(alice, agent="bot")
    stored_files.create_resource(as_actor(alice), "resources/a.md", "1")
    stored_files.create_resource(as_actor(alice), "resources/x.png", PNG)
    start = timezone.now()
    stored_files.move(actor, "resources/a.md", "resources/b.md")
    stored_files.create_resource(as_actor(alice), "resources/a.md", "2")
    with pytest.raises(Conflict):
        undo.undo_run(actor, "bot", start.isoformat(), timezone.now().isoformat())
    start = timezone.now()
    stored_files.replace_content(actor, "resources/x.png", PNG + b"2")
    with pytest.raises(OperationFailed):
        undo.undo_run(actor, "bot", start.isoformat(), timezone.now().isoformat())


def test_deleting_permanently_takes_the_empty_folders_along(alice: User, carol: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/a/b/x.md", "1")
    stored_files.create_resource(as_actor(alice), "resources/a/y.md", "1")
    write_path.delete_permanently(as_actor(carol), "mcp://backlog/resources/a/b/x.md")
    assert folder_paths() == ["resources", "resources/a"]
