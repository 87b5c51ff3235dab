"""Test the history as users read it."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from resources_app.history.timeline import FieldDiff, timeline
from resources_app.models import Task
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, system, task_uri

pytestmark = pytest.mark.django_db


def edit(task: Task, **operation: Any) -> None:
    write_path.write(system(), task_uri(task, operation.pop("field", "title")), operation)


def test_entries_are_newest_first_and_say_who_came_through_which_door(alice: User) -> None:
    task = make_task(title="One")
    actor = as_actor(alice, "mcp", agent="claude-code")
    write_path.write(
        actor, task_uri(task), {"type": "merge", "value": {"title": "Two", "status": "done"}}
    )
    newest, oldest = timeline(task).entries
    assert (newest.version, newest.author, newest.via, newest.agent) == (
        2,
        "alice",
        "mcp",
        "claude-code",
    )
    assert newest.diffs == (FieldDiff("title", "One", "Two"), FieldDiff("status", "open", "done"))
    assert (oldest.version, oldest.action, oldest.author) == (1, "create", "carol")


def test_the_first_entry_shows_what_the_thing_began_with() -> None:
    [entry] = timeline(make_task(title="One", labels=["a"])).entries
    began = {diff.field: diff.after for diff in entry.diffs}
    assert began == {"title": "One", "labels": ["a"], "status": "open", "priority": "none"}
    assert all(diff.before is None for diff in entry.diffs)


def test_texts_of_several_lines_are_shown_as_a_diff() -> None:
    task = make_task(description="one\ntwo\nthree\n")
    edit(task, field="description", type="str_replace", old_str="two", new_str="2")
    [diff] = timeline(task).entries[0].diffs
    assert diff.lines == ["@@ -1,3 +1,3 @@", " one", "-two", "+2", " three"]


def test_archiving_is_an_entry_too() -> None:
    task = make_task()
    write_path.archive(system(), task_uri(task))
    entry = timeline(task).entries[0]
    assert (entry.action, [diff.field for diff in entry.diffs]) == ("archive", ["archived_at"])


def test_pages_follow_one_another_without_gap_or_repeat() -> None:
    task = make_task(title="v1")
    for version in range(2, 8):
        edit(task, type="set", value=f"v{version}")
    seen, before = [], None
    while True:
        page = timeline(task, before=before, limit=3)
        seen += [
            (entry.version, diff.before, diff.after)
            for entry in page.entries
            for diff in entry.diffs[:1]
        ]
        before = page.older
        if before is None:
            break
    assert seen == [*((n, f"v{n - 1}", f"v{n}") for n in range(7, 1, -1)), (1, None, "v1")]


def test_a_page_takes_the_same_queries_however_many_entries_it_has() -> None:
    short, long = make_task(), make_task()
    for number in range(3):
        edit(short, type="set", value=f"v{number}")
    for number in range(40):
        edit(long, type="set", value=f"v{number}")
    counts = []
    for task in (short, long):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            timeline(task)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_oldest_page_ends_and_a_page_before_the_first_version_is_empty() -> None:
    task = make_task()
    assert timeline(task).older is None
    assert timeline(task, before=1).entries == []


def test_somebody_who_left_is_not_a_name(alice: User) -> None:
    task = make_task(actor=as_actor(alice))
    alice.delete()
    assert timeline(task).entries[0].author == ""
