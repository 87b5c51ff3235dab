"""Test an exported tree: its layout, that it is complete and minimal, and what pruning removes."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from resources_app.interchange.tree import Tree
from resources_app.models import Task
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, make_user, system, task_uri
from tests.resources_app.trees import contents_of, reasons, run_export, write_file

pytestmark = pytest.mark.django_db


def test_everything_has_its_place(tmp_path: Path) -> None:
    epic = make_epic()
    task = make_task(epic_id=epic.ref)
    write_path.add_comment(system(), task_uri(task), "A word")
    write_path.archive(system(), task_uri(make_task()))
    stored_files.create_resource(system(), "resources/docs/a.md", "# A\n")
    stored_files.create_resource(system(), "artifacts/b.bin", b"\x00\x01")
    stored_files.create_resource(system(), "resources/old.md", "Old")
    stored_files.remove(system(), "resources/old.md")
    run_export(tmp_path)
    assert set(contents_of(tmp_path)) == {
        "epics/EPIC-0001.md",
        "tasks/TASK-0001.md",
        "comments/TASK-0001.jsonl",
        "archive/TASK-0002.md",
        "resources/docs/a.md",
        "artifacts/b.bin",
        "archive/resources/old.md",
        "metadata/archive/resources/old.md.json",
    }
    assert (tmp_path / "artifacts/b.bin").read_bytes() == b"\x00\x01"


def test_a_second_export_touches_nothing(tmp_path: Path) -> None:
    make_task()
    run_export(tmp_path)
    before = (tmp_path / "tasks/TASK-0001.md").stat()
    assert dict(run_export(tmp_path).counts) == {"unchanged": 1}
    after = (tmp_path / "tasks/TASK-0001.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_is_replaced_whole_and_no_draft_is_left(tmp_path: Path) -> None:
    task = make_task(title="Before")
    run_export(tmp_path)
    with (tmp_path / "tasks/TASK-0001.md").open() as reader:
        write_path.write(system(), task_uri(task, "title"), {"type": "set", "value": "After"})
        run_export(tmp_path)
        assert "title: Before\n" in reader.read()
    assert "title: After\n" in (tmp_path / "tasks/TASK-0001.md").read_text()
    assert len(list((tmp_path / "tasks").iterdir())) == 1


def test_what_moves_to_the_archive_is_not_left_behind(tmp_path: Path) -> None:
    task = make_task()
    stored_files.create_resource(system(), "resources/a.md", "A", title="T")
    run_export(tmp_path)
    write_path.archive(system(), task_uri(task))
    stored_files.remove(system(), "resources/a.md")
    run_export(tmp_path)
    assert {path for path in contents_of(tmp_path) if not path.startswith("metadata/")} == {
        "archive/TASK-0001.md",
        "archive/resources/a.md",
    }
    assert "metadata/resources/a.md.json" not in contents_of(tmp_path)
    write_path.unarchive(system(), task_uri(task))
    run_export(tmp_path)
    assert "tasks/TASK-0001.md" in contents_of(tmp_path)
    assert "archive/TASK-0001.md" not in contents_of(tmp_path)


def test_files_of_what_is_gone_are_removed_only_when_pruning(tmp_path: Path) -> None:
    task = make_task()
    write_path.add_comment(system(), task_uri(task), "A word")
    run_export(tmp_path)
    write_file(tmp_path, "README.md", "Mine")
    write_file(tmp_path, "notes/x.md", "Mine")
    write_path.delete_permanently(system(), task_uri(task))
    run_export(tmp_path)
    assert "tasks/TASK-0001.md" in contents_of(tmp_path)
    report = run_export(tmp_path, prune=True)
    assert report.counts["removed"] == 2
    assert set(contents_of(tmp_path)) == {"README.md", "notes/x.md"}
    assert not (tmp_path / "tasks").exists()


def test_facts_lie_beside_a_file_only_when_its_bytes_do_not_say_them(tmp_path: Path) -> None:
    make_user("zoe", "contributor", "security")
    stored_files.create_resource(system(), "resources/plain.md", "# Title\n")
    stored_files.create_resource(
        system(), "resources/told.md", "# Title\n", title="Other", groups=["security"]
    )
    run_export(tmp_path)
    assert json.loads((tmp_path / "metadata/resources/told.md.json").read_text()) == {
        "title": "Other",
        "groups": ["security"],
    }
    assert not (tmp_path / "metadata/resources/plain.md.json").exists()


def test_frontmatter_too_long_to_read_back_lies_beside_the_file(tmp_path: Path) -> None:
    make_task(title="Long", evidence=["log " * 2000] * 10)
    run_export(tmp_path)
    text = (tmp_path / "tasks/TASK-0001.md").read_text()
    assert "title: Long\n" in text
    assert "evidence" not in text
    beside = json.loads((tmp_path / "metadata/tasks/TASK-0001.md.json").read_text())
    assert len(beside["evidence"]) == 10


def test_a_thing_that_cannot_be_written_is_reported_and_the_rest_is_there(tmp_path: Path) -> None:
    make_task()
    make_task()
    (tmp_path / "tasks/TASK-0001.md").mkdir(parents=True)
    report = run_export(tmp_path)
    assert set(reasons(report.failures)) == {"TASK-0001"}
    assert (tmp_path / "tasks/TASK-0002.md").is_file()


def test_only_what_the_actor_sees_is_exported(tmp_path: Path) -> None:
    from resources_app.interchange.exporting import export_tree

    make_user("zoe", "contributor", "security")
    hidden = make_task(title="Hidden", groups=["security"])
    write_path.add_comment(system(), task_uri(hidden), "Hidden word")
    make_task(title="Shown")
    export_tree(as_actor(make_user("yan", "contributor")), tmp_path)
    assert set(contents_of(tmp_path)) == {"tasks/TASK-0002.md"}


def test_mirrored_files_stay_where_they_are(tmp_path: Path) -> None:
    resource = stored_files.create_resource(system(), "resources/a.md", "A")
    type(resource).objects.update(root="docs")
    run_export(tmp_path)
    assert contents_of(tmp_path) == {}


def test_the_command_counts_what_it_did(tmp_path: Path) -> None:
    make_task()
    out = StringIO()
    call_command("export_backlog", str(tmp_path / "new"), stdout=out)
    assert out.getvalue() == "1 written\n"
    Task.objects.all().delete()
    out = StringIO()
    call_command("export_backlog", str(tmp_path / "new"), "--prune", stdout=out)
    assert out.getvalue() == "1 removed\n"


def test_the_command_refuses_a_file_as_folder(tmp_path: Path) -> None:
    file = write_file(tmp_path, "file", "")
    with pytest.raises(CommandError, match="not a folder"):
        call_command("export_backlog", str(file))


def test_a_tree_never_removes_what_is_outside_its_own_folders(tmp_path: Path) -> None:
    write_file(tmp_path, "tasks/deep/TASK-0001.md", "x")
    assert Tree(tmp_path).remove("tasks/deep/TASK-0001.md")
    assert tmp_path.exists()
    assert not (tmp_path / "tasks").exists()
