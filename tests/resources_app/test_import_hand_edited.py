"""Test hand-written files: read as far as possible, and nothing of them is lost."""

from typing import Any

import pytest

from resources_app.errors import ValidationFailed
from resources_app.interchange.item_files import ItemFile, read_item_file


def read(
    text: str, path: str = "tasks/TASK-0001.md", beside: dict[str, Any] | None = None
) -> ItemFile:
    return read_item_file(path, text, beside)


def with_lines(*lines: str) -> ItemFile:
    return read("\n".join(["---", "title: T", *lines, "---", "Text", ""]))


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter() -> None:
    item = read(
        "\ufeff---\r\nid: TASK-0007\r\ntitle: From Windows\r\n---\r\nOne\r\nTwo\r\n",
        "tasks/TASK-0007.md",
    )
    assert item.values["title"] == "From Windows"
    assert item.values["description"] == "One\nTwo"
    assert item.warnings == []


def test_a_carriage_return_inside_a_text_of_ours_stays() -> None:
    assert read("---\ntitle: T\n---\nOne\r\nTwo\n").values["description"] == "One\r\nTwo"


@pytest.mark.parametrize(
    ("path", "text", "ref"),
    [
        ("tasks/TASK-0012.md", "---\ntitle: T\n---\n", "TASK-0012"),
        ("tasks/TASK-0012-some-words.md", "---\ntitle: T\n---\n", "TASK-0012"),
        ("tasks/TASK-0012.md", "---\nid: TASK-0013\n---\n", "TASK-0013"),
        ("tasks/TASK-0012.md", "---\nid: task-14\n---\n", "TASK-0014"),
        ("tasks/TASK-0012.md", "---\nid: 12\n---\n", "TASK-0012"),
        ("tasks/anything.md", "---\nid: EPIC-0003\n---\n", "EPIC-0003"),
        ("tasks/TASK-12345.md", "---\nid: TASK-12345\n---\n", "TASK-12345"),
    ],
)
def test_the_id_comes_from_the_frontmatter_or_else_from_the_name(
    path: str, text: str, ref: str
) -> None:
    assert read(text, path).ref == ref


@pytest.mark.parametrize(
    "path", ["tasks/notes.md", "tasks/TASK-0000.md", "tasks/FLDR-0001.md", "tasks/TASK.md"]
)
def test_without_an_id_a_file_is_refused(path: str) -> None:
    with pytest.raises(ValidationFailed):
        read("---\ntitle: T\n---\n", path)


@pytest.mark.parametrize(
    ("frontmatter", "body", "title"),
    [
        ("title: Plain", "", "Plain"),
        ("title: A: b: c", "", "A: b: c"),
        ("title: 'It''s: here'", "", "It's: here"),
        ('title: "Say \\"hi\\""', "", 'Say "hi"'),
        ("title: 2026", "", "2026"),
        ("title: [draft] Fix it", "", "[draft] Fix it"),
        ("title: two  spaces", "", "two  spaces"),
        ("status: open", "Intro\n\n## The heading ##\n", "The heading"),
        ("status: open", "No heading", "TASK-0001"),
        ("title: ''", "# Heading", "Heading"),
        ("title: {a: 1}", "# Heading", "Heading"),
    ],
)
def test_a_title_is_found(frontmatter: str, body: str, title: str) -> None:
    assert read(f"---\n{frontmatter}\n---\n{body}").values["title"] == title


def test_a_title_that_is_too_long_is_shortened_and_kept_whole() -> None:
    item = with_lines("title: " + "word " * 60)
    assert len(item.values["title"]) <= 200
    assert item.values["title"].endswith("…")
    assert item.kept["title"] == ("word " * 60).strip()


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("done", "done"),
        ("In Progress", "in_progress"),
        ("in-progress", "in_progress"),
        ("DONE", "done"),
        ("", "open"),
    ],
)
def test_a_status_is_understood_however_it_is_spelt(written: str, status: str) -> None:
    item = with_lines(f"status: {written}")
    assert item.values["status"] == status
    assert item.kept == {}


def test_an_unknown_status_is_open_and_kept() -> None:
    item = with_lines("status: someday")
    assert item.values["status"] == "open"
    assert item.kept == {"status": "someday"}
    assert "someday" in item.warnings[0]


@pytest.mark.parametrize(
    ("line", "day"),
    [
        ("due_date: 2026-02-01", "2026-02-01"),
        ("due_date: 2026-02-01T23:30:00+09:00", "2026-02-01"),
        ("due_date: '2026-02-01 10:00'", "2026-02-01"),
        ("due_date:", None),
    ],
)
def test_a_due_date_may_have_a_time(line: str, day: str | None) -> None:
    assert with_lines(line).values["due_date"] == day


@pytest.mark.parametrize(
    "line", ["due_date: soon", "created_at: yesterday", "updated_at: [1]", "priority: P1"]
)
def test_what_cannot_be_read_is_kept_under_its_own_name(line: str) -> None:
    item = with_lines(line)
    assert list(item.kept) == [line.partition(":")[0]]
    assert len(item.warnings) == 1


@pytest.mark.parametrize(
    ("line", "name", "entries"),
    [
        ("evidence: Seen", "evidence", ["Seen"]),
        ("evidence:", "evidence", []),
        ("labels: a, b ,c", "labels", ["a", "b", "c"]),
        ("labels: [a, a, 7]", "labels", ["a", "7"]),
        ("depends_on: task-2", "depends_on", ["TASK-0002"]),
        (
            "references: https://a.example",
            "references",
            [{"url": "https://a.example", "title": ""}],
        ),
        ("blocked_reason: [x, y]", "blocked_reason", ["x", "y"]),
    ],
)
def test_a_list_may_be_a_single_value(line: str, name: str, entries: list[Any]) -> None:
    item = with_lines(line)
    assert item.values[name] == entries
    assert item.kept == {}


def test_entries_that_cannot_be_used_are_kept_and_the_others_taken() -> None:
    item = with_lines(
        "references:", "  - url: https://a.example", "  - url: 'javascript:alert(1)'", "  - {x: 1}"
    )
    assert item.values["references"] == [{"url": "https://a.example", "title": ""}]
    assert item.kept["references"] == [{"url": "javascript:alert(1)"}, {"x": 1}]


def test_a_restriction_that_cannot_be_read_keeps_the_file_out() -> None:
    with pytest.raises(ValidationFailed):
        with_lines("groups: [{a: 1}]")


def test_a_parent_that_is_a_task_is_kept_but_no_epic() -> None:
    item = with_lines("parent_id: TASK-0002")
    assert item.values["epic_id"] is None
    assert item.kept == {"parent_id": "TASK-0002"}


def test_of_two_different_parents_the_newer_key_counts() -> None:
    item = with_lines("epic_id: EPIC-0001", "parent_id: EPIC-0002")
    assert item.values["epic_id"] == "EPIC-0002"
    assert "parent_id counts" in item.warnings[0]


def test_an_epic_keeps_what_only_tasks_have() -> None:
    item = read(
        "---\nid: EPIC-0001\ntitle: E\nepic_id: EPIC-0002\ndepends_on: [TASK-0001]\n---\n",
        "epics/EPIC-0001.md",
    )
    assert item.kept == {"epic_id": "EPIC-0002", "depends_on": ["TASK-0001"]}


def test_a_description_in_the_frontmatter_is_one_when_there_is_no_text() -> None:
    assert (
        read("---\ntitle: T\ndescription: From the key\n---\n").values["description"]
        == "From the key"
    )
    both = with_lines("description: Short")
    assert both.values["description"] == "Text"
    assert both.kept == {"description": "Short"}


def test_one_blank_line_after_the_frontmatter_is_not_part_of_the_text() -> None:
    assert read("---\ntitle: T\n---\n\nText\n").values["description"] == "Text"


@pytest.mark.parametrize(
    "text",
    [
        "---\nid: TASK-0001\ntitle: T\n",
        "---\n" + "a: b\n" * 20_000 + "---\n",
        "---\na: &a [x, x]\nb: [*a, *a]\n---\n",
        "---\n- just\n- a list\n---\n",
        "---\ntitle: T\n---\n" + "x" * 2_000_001,
        "---\ntitle: T\n---\nNUL \x00 here",
    ],
    ids=["no end", "too long", "alias", "a list", "huge text", "NUL"],
)
def test_what_nothing_can_be_made_of_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        read(text)


def test_an_ampersand_in_a_title_is_no_anchor() -> None:
    assert with_lines("note: this & that: *really*").kept["note"] == "this & that: *really*"


def test_the_key_the_import_uses_itself_is_left_out() -> None:
    item = with_lines("_backlog: {digests: {}}")
    assert item.kept == {}
    assert "reserved" in item.warnings[0]
