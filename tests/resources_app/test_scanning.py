"""Test the scan: rows follow the files of the roots, a second scan writes nothing, a missing root
loses nothing.
"""

import json
import os
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from pytest_django import Settings

from resources_app.errors import PermissionDenied
from resources_app.history import revisions
from resources_app.identity.roles import system_actor
from resources_app.interchange import scan as scanning
from resources_app.interchange.scan import ScanReport, scan
from resources_app.jobs import queue
from resources_app.models import Change, Folder, Job, Resource, Revision
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor

PNG = b"\x89PNG\r\n\x1a\n\x00"


@pytest.fixture
def root(tmp_path: Path, settings: Settings, db: None) -> Path:
    folder = tmp_path / "docs"
    (folder / "adr").mkdir(parents=True)
    (folder / "adr" / "1.md").write_text("---\ntitle: One\ntags: [a]\n---\nText")
    (folder / "readme.txt").write_text("hello")
    (folder / "logo.png").write_bytes(PNG)
    settings.RESOURCE_ROOTS = {"docs": folder}
    return folder


def counts(report: ScanReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.removed, report.unchanged


def row(path: str) -> Resource:
    return Resource.objects.get(path=path)


def live_paths() -> list[str]:
    return sorted(Resource.objects.live().values_list("path", flat=True))


def test_the_first_scan_adds_everything_with_its_facts(root: Path) -> None:
    report = scan()
    assert counts(report) == (3, 0, 0, 0) and report.skipped == []
    assert live_paths() == [
        "resources/docs/adr/1.md",
        "resources/docs/logo.png",
        "resources/docs/readme.txt",
    ]
    kept = row("resources/docs/adr/1.md")
    assert (kept.title, kept.tags, kept.root, kept.frontmatter["title"]) == (
        "One",
        ["a"],
        "docs",
        "One",
    )
    assert sorted(kept.ancestors.values_list("path", flat=True)) == [
        "resources", "resources/docs", "resources/docs/adr",
    ]  # fmt: skip
    binary = row("resources/docs/logo.png")
    assert (binary.content, binary.blob, binary.size, binary.mime_type) == (
        None,
        None,
        len(PNG),
        "image/png",
    )
    change = Change.objects.get(object_id=kept.pk)
    assert (change.via, change.author, change.action) == ("sync", None, "create")


def test_a_second_scan_writes_nothing(root: Path) -> None:
    scan()
    before = (
        Change.objects.count(),
        Revision.objects.count(),
        list(Resource.objects.order_by("pk").values()),
    )
    assert counts(scan()) == (0, 0, 0, 3)
    assert (
        Change.objects.count(),
        Revision.objects.count(),
        list(Resource.objects.order_by("pk").values()),
    ) == before


def test_a_changed_file_becomes_a_new_version_also_with_the_same_size_and_time(root: Path) -> None:
    scan()
    file = root / "readme.txt"
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns
    file.write_text("HELLO")
    os.utime(file, ns=times)
    (root / "logo.png").write_bytes(PNG + b"more")
    (root / "adr" / "1.md").write_text("---\ntitle: Uno\n---\nText")
    assert counts(scan()) == (0, 3, 0, 0)
    text, binary, markdown = (
        row("resources/docs/readme.txt"),
        row("resources/docs/logo.png"),
        row("resources/docs/adr/1.md"),
    )
    assert (text.version, text.content, binary.version, binary.size) == (
        2,
        "HELLO",
        2,
        len(PNG) + 4,
    )
    assert (markdown.title, markdown.tags, markdown.frontmatter) == ("Uno", [], {"title": "Uno"})
    assert revisions.document_at("resource", text.pk, 1)["content"] == "hello"


def test_what_is_gone_is_archived_and_what_comes_back_is_revived(root: Path) -> None:
    scan()
    (root / "readme.txt").unlink()
    assert counts(scan()) == (0, 0, 1, 2)
    assert row("resources/docs/readme.txt").archived_at is not None
    assert counts(scan()) == (0, 0, 0, 2)
    (root / "readme.txt").write_text("hello")
    assert counts(scan()) == (1, 0, 0, 2)
    kept = row("resources/docs/readme.txt")
    assert (kept.archived_at, kept.version, kept.content) == (None, 3, "hello")
    assert [change.action for change in Change.objects.filter(object_id=kept.pk).order_by("pk")] == [
        "create", "archive", "create",
    ]  # fmt: skip


def test_a_text_that_becomes_binary_and_back_is_followed(root: Path) -> None:
    scan()
    (root / "readme.txt").write_bytes(b"\xff\x00")
    scan()
    assert (row("resources/docs/readme.txt").content, row("resources/docs/readme.txt").blob) == (
        None,
        None,
    )
    (root / "readme.txt").write_text("text")
    scan()
    assert row("resources/docs/readme.txt").content == "text"


def test_a_file_that_becomes_a_folder_and_back_is_followed(root: Path) -> None:
    scan()
    (root / "readme.txt").unlink()
    (root / "readme.txt").mkdir()
    (root / "readme.txt" / "inner.md").write_text("x")
    assert counts(scan()) == (1, 0, 1, 2)
    assert (
        "resources/docs/readme.txt/inner.md" in live_paths()
        and "resources/docs/readme.txt" not in live_paths()
    )
    (root / "readme.txt" / "inner.md").unlink()
    (root / "readme.txt").rmdir()
    (root / "readme.txt").write_text("file again")
    assert counts(scan()) == (1, 0, 1, 2)
    assert "resources/docs/readme.txt" in live_paths()


def test_links_fifos_hard_links_and_hidden_things_stay_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    (root / "linked").symlink_to(tmp_path)
    (root / "inside.txt").symlink_to("readme.txt")
    os.link(tmp_path / "secret.txt", root / "hard.txt")
    os.mkfifo(root / "pipe")
    for name in (".git", "node_modules", "__pycache__", ".venv"):
        (root / name).mkdir()
        (root / name / "x.txt").write_text("x")
    (root / ".env").write_text("PASSWORD=x")
    report = scan()
    assert counts(report)[0] == 3
    assert {path.removeprefix("resources/docs/") for path, _ in report.skipped} == {
        "link.txt", "linked", "inside.txt", "hard.txt", "pipe",
    }  # fmt: skip
    assert not Resource.objects.filter(content__contains="secret").exists()


def test_files_over_the_cap_and_names_without_an_address_are_named_and_the_rest_goes_in(
    root: Path,
) -> None:
    (root / "big.txt").write_bytes(b"x" * 2_000_001)
    (root / "bad\\name.txt").write_text("x")
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.txt")).write_text("x")
    deep = root.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    (deep / "x.txt").write_text("x")
    report = scan()
    assert counts(report)[0] == 3 and len(report.skipped) == 4
    json.dumps(report.as_json()).encode()


def test_a_mirrored_file_that_grows_over_the_cap_leaves_the_mirror(root: Path) -> None:
    scan()
    (root / "readme.txt").write_bytes(b"x" * 2_000_001)
    report = scan()
    assert counts(report) == (0, 0, 1, 2) and len(report.skipped) == 1


def test_a_root_that_is_away_is_reported_and_loses_nothing(root: Path, settings: Settings) -> None:
    scan()
    root.rename(root.parent / "elsewhere")
    report = scan()
    assert counts(report) == (0, 0, 0, 0) and report.skipped[0][0] == "resources/docs"
    assert len(live_paths()) == 3


def test_an_unread_folder_keeps_what_was_mirrored_from_it(root: Path) -> None:
    """Scan as if reading the folder failed half-way: folders listed as unread are not treated as
    deleted.
    """
    scan()
    report = ScanReport()
    listing = scanning._Listing(
        files=[("readme.txt",), ("logo.png",)], unread=["resources/docs/adr"]
    )
    mirror = scanning._Mirror(scanning.mounts()[0], report, scanning._Steps(None, 2))
    mirror.bring_up_to_date(listing)
    assert report.removed == 0 and "resources/docs/adr/1.md" in live_paths()
    listing = scanning._Listing(
        files=[("readme.txt",), ("logo.png",)], unread=["resources/docs/ad"]
    )
    scanning._Mirror(scanning.mounts()[0], report, scanning._Steps(None, 2)).bring_up_to_date(
        listing
    )
    assert report.removed == 1


def test_a_root_that_is_not_configured_any_more_stays_until_it_is_forgotten(
    root: Path, settings: Settings
) -> None:
    scan()
    settings.RESOURCE_ROOTS = {}
    report = scan()
    assert counts(report) == (0, 0, 0, 0) and "--forget docs" in report.skipped[0][1]
    assert counts(scan(forget=["docs"])) == (0, 0, 3, 0)
    assert live_paths() == []
    assert scan().skipped == []


def test_what_is_stored_at_a_mirrored_path_is_left_alone(
    root: Path, alice: User, settings: Settings
) -> None:
    roots, settings.RESOURCE_ROOTS = settings.RESOURCE_ROOTS, {}
    stored_files.create_resource(as_actor(alice), "resources/docs/readme.txt", "mine")
    stored_files.create_resource(as_actor(alice), "resources/docs/logo.png/x", "mine")
    settings.RESOURCE_ROOTS = roots
    report = scan()
    assert counts(report)[0] == 1 and len(report.skipped) == 2
    assert row("resources/docs/readme.txt").content == "mine"


def test_nested_roots_show_each_file_once(root: Path, tmp_path: Path, settings: Settings) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "2.md").write_text("two")
    settings.RESOURCE_ROOTS = {"docs": root, "docs/adr": inner, "artifacts/all": root}
    scan()
    assert row("resources/docs/adr/2.md").root == "docs/adr"
    assert (
        "resources/docs/adr/1.md" not in live_paths() and "artifacts/all/adr/1.md" in live_paths()
    )


def test_the_data_folder_of_the_backlog_itself_is_never_mirrored(
    root: Path, settings: Settings
) -> None:
    settings.DATA_DIR = root / "adr"
    (root / "adr" / "secret_key").write_text("key")
    scan()
    assert live_paths() == ["resources/docs/logo.png", "resources/docs/readme.txt"]
    settings.DATA_DIR = root
    assert counts(scan()) == (0, 0, 2, 0)


def test_a_kill_in_the_middle_loses_only_the_chunk_at_work(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        (root / f"f{number}.txt").write_text(str(number))
    monkeypatch.setattr(scanning, "AHEAD_FILES", 4)
    written: list[int] = []

    def stop(done: int, total: int, note: str) -> None:
        written.append(Resource.objects.count())
        if len(written) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(stop)
    assert written == [4, 8] and Resource.objects.count() == 8
    assert counts(scan()) == (5, 0, 0, 8)


def test_mirrored_files_are_seen_by_readers_and_written_by_nobody(
    root: Path, alice: User, bob: User, carol: User, mallory: User
) -> None:
    scan()
    assert (
        Resource.objects.visible_to(bob).count() == 3
        and not Resource.objects.visible_to(mallory).exists()
    )
    assert not Folder.objects.visible_to(mallory).exists()
    uri = "mcp://backlog/resources/docs/readme.txt"
    for user in (alice, carol):
        for attempt in (
            lambda actor: write_path.write(actor, uri, {"type": "append", "content": "x"}),
            lambda actor: stored_files.replace_content(actor, "resources/docs/readme.txt", "x"),
            lambda actor: stored_files.move(actor, "resources/docs/readme.txt", "resources/x.txt"),
            lambda actor: stored_files.remove(actor, "resources/docs/readme.txt"),
            lambda actor: write_path.archive(actor, uri),
        ):
            with pytest.raises(PermissionDenied):
                attempt(as_actor(user))
    assert row("resources/docs/readme.txt").version == 1


def test_a_limit_to_a_group_survives_a_scan(root: Path, bob: User) -> None:
    scan()
    resource = row("resources/docs/readme.txt")
    resource.readers.add(Group.objects.create(name="crew"))
    Resource.objects.filter(pk=resource.pk).update(groups=["crew"], restricted=True)
    (root / "readme.txt").write_text("new")
    scan()
    assert row("resources/docs/readme.txt").content == "new"
    assert not Resource.objects.visible_to(bob).filter(path="resources/docs/readme.txt").exists()


def test_the_system_sees_and_writes_everything_and_is_nobody() -> None:
    actor = system_actor("sync")
    assert (
        actor.may_write
        and actor.is_admin
        and actor.user.pk is None
        and not actor.user.is_authenticated
    )


def test_the_job_scans_and_says_how_it_went(root: Path) -> None:
    waiting = queue.enqueue("scan_resources", {}, key="scan_resources")
    running = queue.claim(waiting.pk)
    assert running is not None
    queue.run(running)
    done = Job.objects.get(pk=waiting.pk)
    assert (done.state, done.progress["done"], done.last_error) == ("done", 3, "")
    assert "3 added" in done.progress["note"]


def test_the_command_prints_a_summary_or_json(root: Path) -> None:
    (root / "link").symlink_to("readme.txt")
    out = StringIO()
    call_command("scan_resources", "--json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "added": 3, "changed": 0, "removed": 0, "unchanged": 0,
        "skipped": [["resources/docs/link", "is a symbolic link"]],
    }  # fmt: skip
    out = StringIO()
    call_command("scan_resources", stdout=out)
    assert "0 added, 0 changed, 0 removed, 3 unchanged, 1 skipped" in out.getvalue()


def test_the_command_says_when_no_folder_is_configured(db: None, settings: Settings) -> None:
    settings.RESOURCE_ROOTS = {}
    out = StringIO()
    call_command("scan_resources", stdout=out)
    assert "BACKLOG_RESOURCE_ROOTS" in out.getvalue()
