"""Test that an imported file is exported as it was written, on either database; only changes are
rewritten.
"""

from pathlib import Path

import pytest

from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.factories import make_user, system
from tests.resources_app.trees import (
    contents_of,
    empty_the_database,
    run_export,
    run_import,
    write_file,
)

pytestmark = pytest.mark.django_db

TIMES = "created_at: '2026-07-18T02:33:46.578Z'\nupdated_at: '2026-07-18T07:14:38.127Z'\n"
BACKLOG_MCP = f"""---
id: TASK-0001
title: 'Lattice W2: disclosure of law-shaped docs'
status: done
parent_id: EPIC-0001
evidence:
  - >-
    Shipped on feat/lattice-w2: a pointer and stubs,
    one cached read.
references:
  - url: 'https://a.example/1'
    title: First
    kind: paper
  - url: 'https://a.example/2'
{TIMES}type: task
zebra: [1, 2.50, 0x1F, 0o17, 0755, 1e3]
big: 123456789012345678901234567890
day: 2026-05-07
1: x
apple: {{b: 1, a: 2}}
---
Text.
"""
HEAD = f"---\nid: TASK-0001\ntitle: Plain\nstatus: open\n{TIMES}type: task\n---\n"
EPIC = f"---\nid: EPIC-0001\ntitle: Epic\nstatus: open\n{TIMES}type: epic\n---\n"
FILES = {
    "as backlog-mcp writes it": BACKLOG_MCP,
    "line ends of Windows": BACKLOG_MCP.replace("\n", "\r\n"),
    "a byte order mark": "\ufeff" + BACKLOG_MCP,
    "a blank line after the frontmatter": HEAD + "\nText.\n",
    "two blank lines after the frontmatter": HEAD + "\n\nText.\n",
    "no last line break": HEAD + "Text.",
    "two last line breaks": HEAD + "Text.\n\n",
    "no text": HEAD,
    "only a blank line": HEAD + "\n",
    "empty fields that are named": HEAD.replace(
        "type: task\n", "type: task\nlabels: []\npriority: medium\n"
    ),
    "comments between the keys": HEAD.replace("type: task\n", "# why\ntype: task # sure\n\n"),
    "another spelling of a value": HEAD.replace("status: open", "status: In Progress"),
    "labels in one line": HEAD.replace("type: task\n", "type: task\nlabels: a, b\n"),
    "a value that no field takes": HEAD.replace("status: open", "status: wip"),
    "times in another zone": HEAD.replace("02:33:46.578Z", "04:33:46.578+02:00"),
}


@pytest.mark.parametrize("text", FILES.values(), ids=FILES.keys())
def test_a_file_comes_back_byte_for_byte(text: str, tmp_path: Path) -> None:
    write_file(tmp_path / "in", "tasks/TASK-0001.md", text)
    write_file(tmp_path / "in", "epics/EPIC-0001.md", EPIC)
    assert run_import(tmp_path / "in").failures == []
    run_export(tmp_path / "out")
    assert contents_of(tmp_path / "out") == contents_of(tmp_path / "in")
    written = Change.objects.count()
    run_import(tmp_path / "in")
    assert Change.objects.count() == written


def test_a_change_here_rewrites_its_own_lines_alone(tmp_path: Path) -> None:
    write_file(tmp_path / "in", "tasks/TASK-0001.md", BACKLOG_MCP)
    write_file(tmp_path / "in", "epics/EPIC-0001.md", EPIC)
    run_import(tmp_path / "in")
    address = "mcp://backlog/tasks/TASK-0001"
    write_path.write(
        system(),
        address,
        {"type": "merge", "value": {"status": "blocked", "blocked_reason": ["Legal"]}},
    )
    run_export(tmp_path / "out")
    before, after = (
        BACKLOG_MCP.splitlines(),
        (tmp_path / "out/tasks/TASK-0001.md").read_text().splitlines(),
    )
    assert [line for line in before if line not in after] == [
        "status: done",
        "updated_at: '2026-07-18T07:14:38.127Z'",
    ]
    [stamp] = [line for line in after if line.startswith("updated_at: ")]
    new = ["status: blocked", stamp, "blocked_reason:", "  - Legal"]
    assert [line for line in after if line not in before] == new
    assert after.index("status: blocked") == before.index("status: done")
    versions = Task.objects.values_list("version", flat=True).get(pk=1)
    run_import(tmp_path / "out")
    assert Task.objects.values_list("version", flat=True).get(pk=1) == versions


def test_a_file_that_was_only_reformatted_keeps_its_new_form(tmp_path: Path) -> None:
    place = write_file(tmp_path / "in", "tasks/TASK-0001.md", HEAD)
    run_import(tmp_path / "in")
    place.write_text(HEAD.replace("title: Plain", 'title: "Plain"'))
    run_import(tmp_path / "in")
    run_export(tmp_path / "out")
    assert '\ntitle: "Plain"\n' in (tmp_path / "out/tasks/TASK-0001.md").read_text()
    assert run_import(tmp_path / "out").counts["tasks unchanged"] == 1


def test_the_export_of_an_import_says_the_same_in_an_empty_database(tmp_path: Path) -> None:
    make_user("sam", "contributor")
    write_file(
        tmp_path / "in",
        "tasks/TASK-0001.md",
        BACKLOG_MCP.replace("status: done", "status: done\nassignee: sam"),
    )
    run_import(tmp_path / "in")
    write_path.write(
        system(), "mcp://backlog/tasks/TASK-0001/title", {"type": "set", "value": "Other: title"}
    )
    run_export(tmp_path / "first")
    empty_the_database()
    run_import(tmp_path / "first")
    assert Task.objects.get(pk=1).title == "Other: title"
    run_export(tmp_path / "second")
    assert contents_of(tmp_path / "first") == contents_of(tmp_path / "second")


def test_keys_that_no_field_takes_have_one_order_on_every_database(tmp_path: Path) -> None:
    """Export without a layout: jsonb orders keys by length, SQLite by insertion."""
    entry = {"url": "https://a.example", "zz": 1, "a": 2, "title": "T"}
    extra = {"references": [entry], "nested": [{"long key": 1, "b": {"yy": 1, "x": 2}}]}
    write_path.create_item(system(), "task", {"title": "Plain"}, extra=extra)
    run_export(tmp_path)
    text = (tmp_path / "tasks/TASK-0001.md").read_text()
    assert "  - a: 2\n    title: T\n    url: https://a.example\n    zz: 1\n" in text
    assert "nested:\n  - b:\n      x: 2\n      yy: 1\n    long key: 1\n" in text
