"""Test reimporting a tree: the file wins where it changed, changes made here meanwhile stay."""

import datetime
from pathlib import Path

import pytest

from resources_app.history import revisions
from resources_app.models import Change, Comment, Epic, Resource, Task
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_user, system
from tests.resources_app.trees import importer, reasons, run_export, run_import, write_file

pytestmark = pytest.mark.django_db

TASK = "mcp://backlog/tasks/TASK-0001"


def write_task(
    folder: Path, *lines: str, text: str = "Text", path: str = "tasks/TASK-0001.md"
) -> None:
    write_file(folder, path, "\n".join(["---", *lines, "---", text, ""]))


def set_field(name: str, value: object) -> None:
    write_path.write(system(), f"{TASK}/{name}", {"type": "set", "value": value})


def task() -> Task:
    return Task.objects.get(pk=1)


def test_a_changed_file_changes_only_what_it_changed(tmp_path: Path) -> None:
    write_task(tmp_path, "title: Before", "status: open", "labels: [a]")
    run_import(tmp_path)
    write_task(tmp_path, "title: After", "status: open", "labels: [a]")
    report = run_import(tmp_path)
    assert report.counts["tasks updated"] == 1
    assert task().title == "After"
    assert task().version == 2
    last = Change.objects.filter(kind="task").latest("pk")
    assert set(last.fields) == {"title", "extra"}
    assert last.operation == {"type": "merge", "value": {"title": "After"}}
    assert revisions.document_at("task", 1, 1)["title"] == "Before"


def test_what_was_changed_here_stays_when_the_file_did_not_change(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T", "status: open")
    run_import(tmp_path)
    set_field("status", "done")
    assert run_import(tmp_path).counts["tasks unchanged"] == 1
    assert task().get_status_display() == "done"


def test_a_change_of_the_file_leaves_other_fields_changed_here_alone(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T", "status: open", "priority: low")
    run_import(tmp_path)
    set_field("status", "done")
    write_task(tmp_path, "title: T", "status: open", "priority: high", text="New text")
    run_import(tmp_path)
    assert task().get_status_display() == "done"
    assert task().get_priority_display() == "high"
    assert task().description == "New text"
    write_task(tmp_path, "title: T", "status: open", "priority: high", text="Newer text")
    run_import(tmp_path)
    assert task().get_status_display() == "done"
    assert task().description == "Newer text"


def test_an_edited_export_is_taken_over_and_an_outdated_one_is_not(tmp_path: Path) -> None:
    write_path.create_item(system(), "task", {"title": "Here"})
    run_export(tmp_path)
    file = tmp_path / "tasks/TASK-0001.md"
    file.write_text(file.read_text().replace("title: Here", "title: By hand"))
    assert run_import(tmp_path).counts["tasks updated"] == 1
    assert task().title == "By hand"


def test_an_export_from_before_a_change_here_is_not_taken_over(tmp_path: Path) -> None:
    write_path.create_item(system(), "task", {"title": "Here"})
    run_export(tmp_path)
    set_field("title", "Later")
    report = run_import(tmp_path)
    assert task().title == "Later"
    assert task().version == 2
    assert (
        "changed here after the file was written" in reasons(report.warnings)["tasks/TASK-0001.md"]
    )


def test_a_person_epic_or_task_that_came_later_is_found(tmp_path: Path) -> None:
    write_task(
        tmp_path, "title: T", "assignee: dana", "epic_id: EPIC-0007", "depends_on: [TASK-0002]"
    )
    report = run_import(tmp_path)
    assert len(report.warnings) == 3
    assert (task().assignee, task().epic, task().depends_on) == (None, None, [])
    dana = make_user("dana", "contributor")
    write_file(tmp_path, "epics/EPIC-0007.md", "---\ntitle: E\n---\n")
    write_file(tmp_path, "tasks/TASK-0002.md", "---\ntitle: Second\n---\n")
    report = run_import(tmp_path)
    assert report.warnings == []
    assert (task().assignee, task().epic_id, task().depends_on) == (dana, 7, ["TASK-0002"])
    assert set(task().extra) == {"_backlog"}
    assert run_import(tmp_path).counts["tasks unchanged"] == 2


def test_somebody_assigned_here_is_not_replaced_by_a_person_who_came_later(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T", "assignee: dana")
    run_import(tmp_path)
    yan = make_user("yan", "contributor")
    set_field("assignee", "yan")
    make_user("dana", "contributor")
    run_import(tmp_path)
    assert task().assignee == yan


def test_an_assignee_without_an_active_account_stays_assigned(tmp_path: Path) -> None:
    zoe = make_user("zoe", "contributor")
    write_path.create_item(system(), "task", {"title": "T", "assignee": "zoe"})
    run_export(tmp_path)
    zoe.is_active = False
    zoe.save()
    assert run_import(tmp_path).counts["tasks unchanged"] == 1
    assert task().assignee == zoe


def test_a_file_moved_to_the_archive_archives_and_one_moved_back_revives(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T")
    run_import(tmp_path)
    (tmp_path / "archive").mkdir()
    (tmp_path / "tasks/TASK-0001.md").rename(tmp_path / "archive/TASK-0001.md")
    run_import(tmp_path)
    assert task().archived_at
    assert run_import(tmp_path).counts["tasks unchanged"] == 1
    (tmp_path / "archive/TASK-0001.md").rename(tmp_path / "tasks/TASK-0001.md")
    run_import(tmp_path)
    assert task().archived_at is None


def test_what_was_archived_or_revived_here_stays_so(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T")
    write_file(tmp_path, "archive/TASK-0002.md", "---\ntitle: Old\n---\n")
    run_import(tmp_path)
    write_path.archive(system(), TASK)
    write_path.unarchive(system(), "mcp://backlog/tasks/TASK-0002")
    run_import(tmp_path)
    assert task().archived_at
    assert Task.objects.get(pk=2).archived_at is None


def test_tasks_come_into_an_epic_that_is_archived_with_them(tmp_path: Path) -> None:
    write_file(
        tmp_path,
        "archive/EPIC-0001.md",
        "---\ntitle: E\narchived_at: '2026-01-01T00:00:00Z'\n---\n",
    )
    write_task(tmp_path, "title: T", "epic_id: EPIC-0001")
    run_import(tmp_path)
    assert Epic.objects.get().archived_at == datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    assert task().epic == Epic.objects.get()


def test_comments_are_added_once_and_corrected(tmp_path: Path) -> None:
    zoe = make_user("zoe", "contributor")
    item = write_path.create_item(system(), "task", {"title": "T"})
    write_path.add_comment(as_actor(zoe, agent="claude-code"), TASK, "First")
    run_export(tmp_path)
    file = tmp_path / f"comments/{item.ref}.jsonl"
    line = file.read_text()
    stranger = '{"created_at": "2026-01-02T03:04:05Z", "author": "ann", "body": "From elsewhere"}\n'
    file.write_text(
        line.replace("First", "Corrected").replace('"updated_at": "2', '"updated_at": "3')
        + stranger
    )
    assert run_import(tmp_path).counts["comments created"] == 1
    assert sorted(Comment.objects.values_list("body", "author__username", "agent")) == [
        ("Corrected", "zoe", "claude-code"),
        ("From elsewhere", None, ""),
    ]
    assert not [what for what in run_import(tmp_path).counts if what.startswith("comments")]
    run_export(tmp_path)
    assert '"author": "ann"' in file.read_text()


def test_a_line_that_is_no_comment_is_reported_and_the_others_go_in(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T")
    good = '{"created_at": "2026-01-02T03:04:05Z", "body": "Good \u2028 one"}'
    bad = [
        "not json",
        "[1]",
        '{"body": "no time"}',
        '{"created_at": "2026-01-02", "body": ""}',
        "[" * 100_000,
    ]
    write_file(tmp_path, "comments/TASK-0001.jsonl", "\n".join([*bad, good]))
    report = run_import(tmp_path)
    assert [comment.body for comment in Comment.objects.all()] == ["Good \u2028 one"]
    assert [path for path, _ in report.failures] == ["comments/TASK-0001.jsonl"] * 5


def test_a_changed_file_becomes_a_new_version_of_the_resource(tmp_path: Path) -> None:
    file = write_file(tmp_path, "resources/a.md", "# One\n")
    run_import(tmp_path)
    file.write_text("# Two\n")
    assert run_import(tmp_path).counts["resources updated"] == 1
    resource = Resource.objects.get()
    assert (resource.content, resource.title, resource.version) == ("# Two\n", "Two", 2)
    assert run_import(tmp_path).counts["resources unchanged"] == 1


def test_a_resource_changed_or_removed_here_stays_when_its_file_did_not_change(
    tmp_path: Path,
) -> None:
    write_file(tmp_path, "resources/a.md", "# One\n")
    write_file(tmp_path, "resources/b.md", "# Gone\n")
    run_import(tmp_path)
    write_path.write(
        system(), "mcp://backlog/resources/a.md", {"type": "append", "content": "More\n"}
    )
    stored_files.remove(system(), "resources/b.md")
    assert run_import(tmp_path).counts["resources unchanged"] == 2
    assert Resource.objects.get(path="resources/a.md").content == "# One\nMore\n"
    assert Resource.objects.get(path="resources/b.md").archived_at


def test_an_import_by_somebody_else_finds_the_same(tmp_path: Path) -> None:
    write_task(tmp_path, "title: T", "groups: [security]")
    run_import(tmp_path)
    assert task().groups == ["security"]
    assert importer().user.username == "carol"
    assert run_import(tmp_path).counts["tasks unchanged"] == 1
