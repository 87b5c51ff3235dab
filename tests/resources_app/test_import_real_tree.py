"""Test a tree like backlog-mcp's own repository: six tasks in a separate folder, and hundreds of
documents.
"""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from resources_app.interchange.importing import import_tree
from resources_app.models import Comment, Epic, Resource, Task
from resources_app.writing import write_path
from search_app.search import search_unified
from tests.factories import make_user, system
from tests.resources_app.trees import (
    contents_of,
    importer,
    reasons,
    run_export,
    run_import,
    write_file,
)

pytestmark = pytest.mark.django_db

TASK = """---
id: TASK-000{n}
title: 'Lattice W{n}: disclosure'
status: done
parent_id: FLDR-0001
evidence:
  - >-
    Shipped on a branch:
    tests are green.
created_at: '2026-07-18T02:33:46.57{n}Z'
updated_at: '2026-07-18T07:14:38.127Z'
type: task
---
Chartered in a proposal.
"""
DOCUMENTS = {
    "NORTH-STAR.md": "# North star\n",
    "adr/0001-first.md": (
        '---\ntitle: "0001. First"\ndate: 2026-05-07\nstatus: Accepted\nfolder: FLDR-0001\n---\n\n#'
        " First\n"
    ),
    "adr/0092.1-plan.md": "# Plan\r\n",
    "memories/MEMO-0001.md": (
        "---\nid: MEMO-0001\nlayer: procedural\nparent_id: FLDR-0001\n---\nA lesson.\n"
    ),
    "references/REF-0012.md": "---\ncategory: prior-art\ncitations:\n  - kind: paper\n---\n",
    "evaluation/reports/run.jsonl": '{"score": 1}\n',
    "substrates/agent.json": "{}\n",
    "tasks/MLST-0001.md": "---\nid: MLST-0001\ntitle: Milestone\n---\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    for number in (1, 2, 3):
        write_file(folder, f"tasks/TASK-000{number}.md", TASK.format(n=number))
    for path, text in DOCUMENTS.items():
        write_file(folder, path, text)
    return folder


def run_command(folder: Path, **options: object) -> tuple[list[str], str]:
    out, err = StringIO(), StringIO()
    call_command("import_backlog", str(folder), stdout=out, stderr=err, **options)
    return out.getvalue().splitlines(), err.getvalue()


def test_everything_left_out_is_named_and_counted_and_nothing_was_refused(tree: Path) -> None:
    write_file(tree, "folders/FLDR-0002.md", "---\nid: FLDR-0002\ntitle: Other\n---\n")
    write_file(tree, "comments/TASK-9999.jsonl", "{}\n")
    write_file(tree, "metadata/tasks/TASK-9999.md.json", "{}\n")
    write_file(tree, ".git/config", "[core]\n")
    (tree / "AGENTS.md").symlink_to("NORTH-STAR.md")
    counts, named = run_command(tree)
    assert counts[0] == "3 tasks created"
    assert counts[1].startswith(f"{len(DOCUMENTS) + 5} left out: ")
    for folder in (
        "2 in adr/",
        "1 in memories/",
        "NORTH-STAR.md",
        "1 in folders/",
        "1 in comments/",
        ".git",
    ):
        assert folder in counts[1]
    for path in (
        *DOCUMENTS,
        "folders/FLDR-0002.md",
        "comments/TASK-9999.jsonl",
        "AGENTS.md",
        ".git",
    ):
        assert f"  {path}\n" in named


def test_something_refused_gives_an_exit_code_and_the_rest_goes_in(tree: Path) -> None:
    write_file(tree, "tasks/TASK-0009.md", "---\ntitle: No end\n")
    with pytest.raises(CommandError, match="1 refused") as raised:
        run_command(tree)
    assert raised.value.returncode == 1
    assert Task.objects.count() == 3


def test_without_options_the_tasks_come_back_byte_for_byte(tree: Path, tmp_path: Path) -> None:
    run_import(tree)
    run_export(tmp_path / "out")
    tasks = {path: raw for path, raw in contents_of(tree).items() if path.startswith("tasks/TASK")}
    assert contents_of(tmp_path / "out") == tasks


def test_a_folder_becomes_an_epic_and_stays_one(tree: Path, tmp_path: Path) -> None:
    write_file(tree, "epics/EPIC-0001.md", "---\nid: EPIC-0001\ntitle: Of the tree\n---\n")
    write_file(
        tree,
        "tasks/FLDR-0001.md",
        "---\nid: FLDR-0001\ntitle: Project\ntype: folder\n---\nAll work.\n",
    )
    counts, named = run_command(tree, folders="epics")
    assert counts[0] == "2 epics created, 3 tasks created"
    assert "without effect" not in named and "FLDR" not in counts[1]
    epic = Epic.objects.get(title="Project")
    assert (epic.ref, epic.description, epic.extra["folder_id"]) == (
        "EPIC-0002",
        "All work.",
        "FLDR-0001",
    )
    assert set(Task.objects.values_list("epic", flat=True)) == {epic.pk}
    for options in ({}, {"folders": "epics"}):
        assert run_command(tree, **options)[0][0] == "2 epics unchanged, 3 tasks unchanged"
    run_export(tmp_path / "out")
    assert run_command(tmp_path / "out")[0] == ["2 epics unchanged, 3 tasks unchanged"]


def test_a_folder_without_a_file_becomes_an_epic_too(tree: Path) -> None:
    run_import(tree)
    report = import_tree(importer(), tree, folders="epics")
    assert dict(report.counts) == {"epics created": 1, "tasks updated": 3}
    assert Epic.objects.get().title == "FLDR-0001"
    assert import_tree(importer(), tree).counts["tasks unchanged"] == 3


def test_a_folder_becomes_a_label_of_its_tasks_and_stays_one(tree: Path, tmp_path: Path) -> None:
    write_file(tree, "folders/FLDR-0001.md", "---\nid: FLDR-0001\ntitle: Project\n---\n")
    report = import_tree(importer(), tree, folders="labels")
    assert [task.labels for task in Task.objects.all()] == [["Project"]] * 3
    assert not Epic.objects.exists() and "folders/FLDR-0001.md" not in reasons(report.left_out)
    assert import_tree(importer(), tree).counts["tasks unchanged"] == 3
    run_export(tmp_path / "out")
    text = (tmp_path / "out/tasks/TASK-0001.md").read_text()
    assert "\nparent_id: FLDR-0001\n" in text and "\nlabels:\n  - Project\n" in text


def test_documents_become_resources_on_request(tree: Path, tmp_path: Path) -> None:
    report = import_tree(importer(), tree, documents=True)
    assert report.counts["resources created"] == len(DOCUMENTS) and report.left_out == []
    assert Resource.objects.get(path="resources/adr/0001-first.md").title == "0001. First"
    again = import_tree(importer(), tree, documents=True)
    assert again.counts["resources unchanged"] == len(DOCUMENTS)
    run_export(tmp_path / "out")
    out = contents_of(tmp_path / "out")
    assert all(out[f"resources/{path}"] == text.encode() for path, text in DOCUMENTS.items())


@pytest.mark.parametrize("name", ["created_at", "updated_at", "archived_at"])
def test_a_time_out_of_range_costs_its_own_line_alone(name: str, tree: Path) -> None:
    good = {"created_at": "2026-01-01T00:00:00Z", "body": "good"}
    bad = good | {name: "0001-01-01T00:00:00+14:00", "body": "bad"}
    write_file(tree, "comments/TASK-0001.jsonl", f"{json.dumps(bad)}\n{json.dumps(good)}\n")
    write_file(tree, "archive/resources/old.md", "Old")
    write_file(
        tree,
        "metadata/archive/resources/old.md.json",
        '{"archived_at": "9999-12-31T23:59:59-14:00"}',
    )
    report = run_import(tree)
    failed = reasons(report.failures)
    assert set(failed) == {"comments/TASK-0001.jsonl", "archive/resources/old.md"}
    assert (
        "Line 1" in failed["comments/TASK-0001.jsonl"]
        and name in failed["comments/TASK-0001.jsonl"]
    )
    assert [comment.body for comment in Comment.objects.all()] == ["good"]
    assert Task.objects.count() == 3


def test_keys_of_comments_that_are_left_out_are_named(tree: Path) -> None:
    line = json.dumps({"created_at": "2026-01-01T00:00:00Z", "body": "Said", "id": 7})
    write_file(tree, "comments/TASK-0001.jsonl", f"{line}\n{line}\n")
    report = run_import(tree)
    assert "'id' (2 times)" in reasons(report.warnings)["comments/TASK-0001.jsonl"]
    assert Comment.objects.count() == 2


@pytest.mark.parametrize("name", ["comments", "metadata"])
def test_nothing_is_read_through_a_linked_folder(name: str, tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    write_file(
        outside, "TASK-0001.jsonl", '{"created_at": "2026-01-01T00:00:00Z", "body": "secret"}\n'
    )
    write_file(outside, "tasks/TASK-0001.md.json", '{"title": "secret"}')
    (tree / name).symlink_to(outside)
    report = run_import(tree)
    assert "symbolic link" in reasons(report.failures)[name]
    assert not Comment.objects.exists() and not Task.objects.filter(title="secret").exists()
    assert Task.objects.filter(pk__in=[2, 3]).count() == 2


def test_the_comments_of_one_item_are_indexed_once(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from search_app.index import write

    lines = [
        {"created_at": "2026-01-01T00:00:00Z", "body": f"Word{n}", "agent": f"a{n}"}
        for n in range(30)
    ]
    write_file(tree, "comments/TASK-0001.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
    built: list[str] = []
    build = write.build
    monkeypatch.setattr(
        write, "build", lambda thing, *rest: built.append(thing.ref) or build(thing, *rest)
    )
    assert run_import(tree).counts["comments created"] == 30
    assert built.count("TASK-0001") == 2
    reader = make_user("bob", "viewer")
    assert [hit["id"] for hit in search_unified(reader, "word29")["results"]] == ["TASK-0001"]


def test_tasks_that_all_depend_on_each_other_go_in_with_the_circles_opened(tmp_path: Path) -> None:
    refs = [f"TASK-{number:04d}" for number in range(1, 61)]
    for ref in refs:
        needs = ", ".join(other for other in refs if other != ref)
        write_file(tmp_path, f"tasks/{ref}.md", f"---\ntitle: {ref}\ndepends_on: [{needs}]\n---\n")
    assert run_import(tmp_path).failures == []
    assert sum(len(task.depends_on) for task in Task.objects.all()) == 60 * 59 // 2


def test_a_label_that_was_taken_away_here_does_not_come_back(tree: Path) -> None:
    import_tree(importer(), tree, folders="labels")
    write_path.write(system(), "mcp://backlog/tasks/TASK-0001/labels", {"type": "set", "value": []})
    import_tree(importer(), tree, folders="labels")
    assert Task.objects.get(pk=1).labels == []
