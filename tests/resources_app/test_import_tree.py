"""Test a tree as backlog-mcp leaves it, with changes by users and older versions."""

import datetime
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.models import Change, Epic, Resource, Task
from resources_app.reading.markdown import kept_keys
from resources_app.vocabulary import Priority, Status
from resources_app.writing.write_path import create_item
from tests.factories import make_task, make_user, system
from tests.resources_app.trees import (
    MCP_TREE,
    contents_of,
    importer,
    reasons,
    run_export,
    run_import,
    write_file,
)

pytestmark = pytest.mark.django_db


def task(number: int) -> Task:
    return Task.objects.get(pk=number)


def moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def test_ids_texts_lists_and_times_are_taken_over() -> None:
    run_import(MCP_TREE)
    first = task(1)
    assert first.title == "Fix bug in authentication"
    assert first.status == Status.DONE
    assert first.epic == Epic.objects.get(pk=1)
    assert first.evidence == ["Fixed in CR-12345", "Validated in beta"]
    assert first.references[0] == {
        "url": "https://github.com/gkoreli/backlog-mcp/issues/7",
        "title": "The report",
    }
    assert first.created_at == moment("2026-01-10T10:00:00Z")
    assert first.updated_at == moment("2026-01-12T17:30:00Z")
    assert first.description.startswith("## Description\n")
    assert first.description.endswith("// $1 and \\1 stay as they are\n```")


def test_epics_are_found_in_their_folder_and_among_the_tasks() -> None:
    run_import(MCP_TREE)
    assert {epic.title for epic in Epic.objects.all()} == {
        "Resource viewer",
        "Writable resources: delta edits",
    }


def test_colons_single_strings_and_parent_id_are_understood() -> None:
    run_import(MCP_TREE)
    second = task(2)
    assert second.title == "Design: the viewer: split pane"
    assert second.blocked_reason == ["Waiting for API access"]
    assert second.evidence == ["Sketch in the shared folder"]
    assert second.epic_id == 1


def test_dates_may_be_days_or_times_and_a_dependency_may_come_later() -> None:
    report = run_import(MCP_TREE)
    third = task(3)
    assert third.title == 'Quoted "title" with #hash'
    assert third.priority == Priority.HIGH
    assert third.labels == ["viewer", "ui: split"]
    assert third.due_date == datetime.date(2026, 2, 1)
    assert third.created_at == moment("2026-01-13T00:00:00Z")
    assert third.updated_at == moment("2026-01-13T08:30:00Z")
    assert third.depends_on == ["TASK-0004"]
    assert third.extra["depends_on"] == ["TASK-9999"]
    assert "TASK-9999" in reasons(report.warnings)["tasks/TASK-0003.md"]


def test_what_no_field_can_take_is_kept_with_a_warning() -> None:
    report = run_import(MCP_TREE)
    fourth = task(4)
    assert fourth.status == Status.OPEN
    assert fourth.assignee is None
    assert fourth.extra["sprint"] == "2026-W03"
    assert fourth.estimate == 3.5
    assert fourth.extra["reviewers"] == [{"name": "sam", "role": "ux"}, {"name": "kim"}]
    warned = reasons(report.warnings)["tasks/TASK-0004.md"]
    assert "'wip'" in warned
    assert "in_progress" in warned
    assert "nobody-here" in warned


def test_what_no_field_can_take_is_given_back_until_the_field_gets_a_value(tmp_path: Path) -> None:
    run_import(MCP_TREE)
    run_export(tmp_path)
    text = (tmp_path / "tasks/TASK-0004.md").read_text()
    assert "\nstatus: wip\n" in text
    assert "\nassignee: nobody-here\n" in text
    call_write("mcp://backlog/tasks/TASK-0004/status", {"type": "set", "value": "done"})
    run_export(tmp_path)
    text = (tmp_path / "tasks/TASK-0004.md").read_text()
    assert "\nstatus: done\n" in text
    assert "wip" not in text


def call_write(uri: str, operation: dict[str, object]) -> None:
    from resources_app.writing import write_path

    write_path.write(system(), uri, operation)


def test_a_note_without_frontmatter_gets_its_id_from_its_name_and_its_title_from_its_heading() -> (
    None
):
    run_import(MCP_TREE)
    assert task(5).title == "Write the release notes"
    assert task(5).description.startswith("# Write the release notes")


def test_bad_files_are_reported_and_the_rest_goes_in() -> None:
    report = run_import(MCP_TREE)
    failed = reasons(report.failures)
    assert set(failed) == {f"tasks/{name}.md" for name in ("TASK-0006", "TASK-0007", "TASK-0008")}
    assert "does not end" in failed["tasks/TASK-0006.md"]
    assert "aliases" in failed["tasks/TASK-0007.md"]
    assert "UTF-8" in failed["tasks/TASK-0008.md"]
    assert set(Task.objects.values_list("pk", flat=True)) == {1, 2, 3, 4, 5, 9}
    assert set(reasons(report.left_out)) == {".internal", "tasks/FLDR-0001.md"}


def test_the_archive_folder_becomes_the_archive() -> None:
    run_import(MCP_TREE)
    assert task(9).archived_at == moment("2025-12-24T10:00:00Z")
    assert task(9).epic_id == 1


def test_attached_files_become_resources() -> None:
    run_import(MCP_TREE)
    attached = Resource.objects.get(path="resources/TASK-0001/design.md")
    assert attached.title == "Login flow"
    assert attached.tags == ["auth"]
    assert Resource.objects.filter(path="artifacts/task-0003/artifact.md").exists()
    assert Resource.objects.count() == 2


def test_new_tasks_get_numbers_after_the_imported_ones() -> None:
    run_import(MCP_TREE)
    assert make_task().number == 10


def test_every_change_is_noted_as_an_import_by_the_admin() -> None:
    actor = importer()
    run_import(MCP_TREE)
    assert set(Change.objects.values_list("author", "via")) == {(actor.user.pk, "import")}


def test_a_second_import_changes_nothing() -> None:
    run_import(MCP_TREE)
    before = Change.objects.count()
    report = run_import(MCP_TREE)
    assert Change.objects.count() == before
    assert dict(report.counts) == {
        "epics unchanged": 2,
        "tasks unchanged": 6,
        "resources unchanged": 2,
    }


def test_the_tree_survives_in_our_format(tmp_path: Path) -> None:
    run_import(MCP_TREE)
    run_export(tmp_path / "a")
    assert run_import(tmp_path / "a").counts["tasks unchanged"] == 6
    run_export(tmp_path / "b")
    assert contents_of(tmp_path / "a") == contents_of(tmp_path / "b")


def test_the_command_reports_and_takes_the_first_superuser(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = User.objects.create_superuser("root", password="x")
    out, err = StringIO(), StringIO()
    with pytest.raises(CommandError, match="3 refused"):
        call_command("import_backlog", str(MCP_TREE), stdout=out, stderr=err)
    assert out.getvalue().splitlines() == [
        "2 epics created, 2 resources created, 6 tasks created",
        "2 left out: .internal, 1 in tasks/",
    ]
    assert "tasks/TASK-0008.md: It is not UTF-8 text" in err.getvalue()
    assert "Left out, 1: It is a folder of backlog-mcp." in err.getvalue()
    assert Change.objects.filter(author=root).count() == Change.objects.count()


def test_the_command_works_in_a_database_without_people() -> None:
    with pytest.raises(CommandError, match="3 refused"):
        call_command("import_backlog", str(MCP_TREE), stdout=StringIO(), stderr=StringIO())
    assert Task.objects.count() == 6
    assert not User.objects.exists()


@pytest.mark.parametrize("name", ["alice", "missing"])
def test_the_command_refuses_people_who_are_no_admins(name: str) -> None:
    make_user("alice", "contributor")
    with pytest.raises(CommandError, match=f"no admin '{name}'"):
        call_command("import_backlog", str(MCP_TREE), user=name)
    assert not Task.objects.exists()


def test_the_command_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no folder"):
        call_command("import_backlog", str(tmp_path / "missing"))


def test_files_directly_in_the_folder_are_imported_too(tmp_path: Path) -> None:
    write_file(tmp_path, "TASK-0003-a-slug.md", "---\ntitle: Flat\n---\n")
    write_file(tmp_path, "README.md", "# Not a task\n")
    assert run_import(tmp_path).failures == []
    assert task(3).title == "Flat"


def test_two_files_with_one_id_are_not_mixed(tmp_path: Path) -> None:
    write_file(tmp_path, "tasks/TASK-0001.md", "---\nid: TASK-0001\ntitle: First\n---\n")
    write_file(tmp_path, "tasks/TASK-0002.md", "---\nid: TASK-0001\ntitle: Second\n---\n")
    report = run_import(tmp_path)
    assert task(1).title == "First"
    assert "read from tasks/TASK-0001.md already" in reasons(report.failures)["tasks/TASK-0002.md"]


def test_a_circle_of_dependencies_is_opened_and_kept(tmp_path: Path) -> None:
    for number, needed in ((1, 2), (2, 3), (3, 1)):
        text = f"---\ntitle: T{number}\ndepends_on: [TASK-000{needed}]\n---\n"
        write_file(tmp_path, f"tasks/TASK-000{number}.md", text)
    report = run_import(tmp_path)
    assert Task.objects.count() == 3
    assert sum(len(each.depends_on) for each in Task.objects.all()) == 2
    kept = [each for each in Task.objects.all() if "depends_on" in kept_keys({"extra": each.extra})]
    assert len(kept) == 1
    assert "in a circle" in str(report.warnings)
    run_export(tmp_path / "out")
    for number, needed in ((1, 2), (2, 3), (3, 1)):
        assert (
            f"depends_on: [TASK-000{needed}]\n"
            in (tmp_path / f"out/tasks/TASK-000{number}.md").read_text()
        )


def test_a_file_that_breaks_a_rule_of_the_backlog_is_reported_alone(tmp_path: Path) -> None:
    create_item(system(), "task", {"title": "Old"}, number=1)
    create_item(system(), "task", {"title": "Needs it", "depends_on": ["TASK-0001"]}, number=2)
    write_file(tmp_path, "tasks/TASK-0001.md", "---\ntitle: Old\ndepends_on: [TASK-0002]\n---\n")
    write_file(tmp_path, "tasks/TASK-0003.md", "---\ntitle: Fine\n---\n")
    report = run_import(tmp_path)
    assert "would depend on itself" in reasons(report.failures)["tasks/TASK-0001.md"]
    assert task(3).title == "Fine"
    assert task(1).depends_on == []
