"""Test a task as markdown with frontmatter, as its /file and /metadata addresses and the export
show it.
"""

import datetime

import pytest

from resources_app.history import revisions
from resources_app.interchange.item_files import read_item_file
from resources_app.reading.markdown import item_frontmatter, item_markdown, write_time
from resources_app.writing import write_path
from tests.factories import make_epic, make_task, make_user, system, task_uri

pytestmark = pytest.mark.django_db

UTC = datetime.UTC


def test_our_fields_come_in_a_fixed_order_and_empty_ones_are_left_out() -> None:
    make_user("zoe", "contributor")
    epic = make_epic()
    full = make_task(
        title="A: b",
        description="Text",
        status="blocked",
        priority="high",
        labels=["x"],
        assignee="zoe",
        due_date="2026-02-01",
        epic_id=epic.ref,
        blocked_reason=["Because"],
        references=[{"url": "https://a.example"}],
    )
    assert (
        item_markdown(full)
        == "---\nid: TASK-0001\ntitle: 'A: b'\nstatus: blocked\ntype: task\nepic_id:"
        " EPIC-0001\npriority: high\nlabels:\n  - x\nassignee: zoe\ndue_date:"
        " '2026-02-01'\nreferences:\n  - url: https://a.example\nblocked_reason:\n  -"
        f" Because\ncreated_at: '{write_time(full.created_at)}'\nupdated_at:"
        f" '{write_time(full.updated_at)}'\n---\nText\n"
    )
    assert list(item_frontmatter(make_task())) == [
        "id",
        "title",
        "status",
        "type",
        "created_at",
        "updated_at",
    ]


def test_keys_of_an_imported_file_come_last_and_sorted() -> None:
    extra = {
        "zeta": 1,
        "alpha": {"b": [{"d": 1, "c": 2}], "a": None},
        "_backlog": {"digests": {"title": "x"}},
    }
    task = write_path.create_item(system(), "task", {"title": "T"}, extra=extra)
    facts = item_frontmatter(task)
    assert list(facts)[-2:] == ["alpha", "zeta"]
    assert list(facts["alpha"]) == ["a", "b"]
    assert list(facts["alpha"]["b"][0]) == ["c", "d"]
    assert "_backlog" not in item_markdown(task)


def test_an_earlier_version_is_shown_as_it_was() -> None:
    task = make_task(title="Before", description="Old")
    write_path.write(
        system(),
        task_uri(task),
        {"type": "merge", "value": {"title": "After", "description": "New"}},
    )
    task.refresh_from_db()
    then = revisions.document_at("task", task.pk, 1)
    assert item_frontmatter(task, then)["title"] == "Before"
    assert item_markdown(task, then).endswith("---\nOld\n")


def test_what_is_shown_can_be_read_back() -> None:
    task = make_task(
        title="T",
        description="\n---\nid: TASK-0009\n---\n",
        evidence=["- a\n\n  b "],
        labels=["on", "1.0"],
    )
    read = read_item_file("tasks/TASK-0001.md", item_markdown(task))
    assert (read.ref, read.warnings, read.kept) == ("TASK-0001", [], {})
    assert read.values["description"] == task.description
    assert read.values["evidence"] == task.evidence
    assert read.values["labels"] == ["on", "1.0"]
    assert read.times["created_at"] == task.created_at


def test_times_are_written_in_utc() -> None:
    east = datetime.timezone(datetime.timedelta(hours=9))
    assert write_time(datetime.datetime(2026, 1, 1, 0, 30, tzinfo=east)) == "2025-12-31T15:30:00Z"
