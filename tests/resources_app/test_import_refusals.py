"""Test what an import must not do: follow links, read huge or special files, exhaust the
machine.
"""

import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from resources_app.interchange import tree as backlog_tree
from resources_app.models import Resource, Task
from tests.resources_app.trees import reasons, run_export, run_import, write_file

pytestmark = pytest.mark.django_db

GOOD = "---\ntitle: Good\n---\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    write_file(folder, "tasks/TASK-0001.md", GOOD)
    return folder


def assert_only_the_good_one_went_in() -> None:
    assert list(Task.objects.values_list("title", flat=True)) == ["Good"]


def test_links_to_files_and_folders_are_not_followed(tree: Path, tmp_path: Path) -> None:
    secret = write_file(tmp_path, "secret/TASK-0002.md", "---\ntitle: Secret\n---\n")
    (tree / "tasks/TASK-0002.md").symlink_to(secret)
    (tree / "tasks/more").symlink_to(secret.parent)
    (tree / "epics").symlink_to(secret.parent)
    (tree / "resources").mkdir()
    (tree / "resources/secret.md").symlink_to(secret)
    (tree / "artifacts").symlink_to(secret.parent)
    report = run_import(tree)
    assert_only_the_good_one_went_in()
    assert not Resource.objects.exists()
    linked = {"tasks/TASK-0002.md", "tasks/more", "epics", "resources/secret.md", "artifacts"}
    assert {path for path, message in report.failures if "symbolic link" in message} == linked


def test_a_comments_file_that_is_a_link_is_not_read(tree: Path, tmp_path: Path) -> None:
    line = '{"created_at": "2026-01-02T03:04:05Z", "body": "secret"}\n'
    secret = write_file(tmp_path, "secret.jsonl", line)
    (tree / "comments").mkdir()
    (tree / "comments/TASK-0001.jsonl").symlink_to(secret)
    report = run_import(tree)
    assert "comments/TASK-0001.jsonl" in reasons(report.failures)
    assert not Task.objects.get().comments.exists()


def test_a_pipe_does_not_hold_the_import_up(tree: Path) -> None:
    os.mkfifo(tree / "tasks/TASK-0002.md")
    report = run_import(tree)
    assert_only_the_good_one_went_in()
    assert "not a plain file" in reasons(report.failures)["tasks/TASK-0002.md"]


def test_a_huge_file_is_refused_unread(tree: Path) -> None:
    file = write_file(tree, "tasks/TASK-0002.md", GOOD)
    with file.open("r+b") as handle:
        handle.truncate(backlog_tree.MAX_ITEM_BYTES + 1)
    report = run_import(tree)
    assert_only_the_good_one_went_in()
    assert "at most" in reasons(report.failures)["tasks/TASK-0002.md"]


def test_a_text_over_two_million_characters_is_refused(tree: Path) -> None:
    write_file(tree, "tasks/TASK-0002.md", GOOD + "x" * 2_000_001)
    write_file(tree, "resources/big.txt", "x" * 2_000_001)
    report = run_import(tree)
    assert_only_the_good_one_went_in()
    assert set(reasons(report.failures)) == {"tasks/TASK-0002.md", "resources/big.txt"}


def test_facts_beside_a_file_that_are_not_json_keep_the_file_out(tree: Path) -> None:
    write_file(tree, "resources/a.md", "A")
    write_file(tree, "metadata/resources/a.md.json", '{"groups": ["security"')
    write_file(tree, "tasks/TASK-0002.md", GOOD)
    write_file(tree, "metadata/tasks/TASK-0002.md.json", "[" * 100_000)
    report = run_import(tree)
    assert_only_the_good_one_went_in()
    assert not Resource.objects.exists()
    assert set(reasons(report.failures)) == {"tasks/TASK-0002.md", "resources/a.md"}


def test_a_path_that_cannot_be_a_resource_is_reported(tree: Path) -> None:
    write_file(tree, "resources/back\\slash.md", "No address has a backslash")
    (tree / "resources" / os.fsdecode(b"caf\xe9.md")).write_text("No address has this name")
    write_file(tree, "resources/good.md", "Good")
    printed = StringIO()
    with pytest.raises(CommandError, match="2 refused"):
        call_command("import_backlog", str(tree), stdout=StringIO(), stderr=printed)
    assert list(Resource.objects.values_list("path", flat=True)) == ["resources/good.md"]
    assert "resources/back\\slash.md: The path cannot be used" in printed.getvalue()
    assert "resources/caf\\udce9.md: The path cannot be used" in printed.getvalue()


def test_nothing_is_written_through_a_link(tree: Path, tmp_path: Path) -> None:
    run_import(tree)
    outside = tmp_path / "outside"
    outside.mkdir()
    target = tmp_path / "target"
    target.mkdir()
    (target / "tasks").symlink_to(outside)
    report = run_export(target, prune=True)
    assert "symbolic link" in reasons(report.failures)["TASK-0001"]
    assert list(outside.iterdir()) == []
