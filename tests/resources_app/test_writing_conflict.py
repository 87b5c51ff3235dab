"""Test stale ETags: rejected with what changed since the caller's read, and without touching
anything.
"""

import pytest
from django.contrib.auth.models import User

from resources_app.addresses.uris import parse
from resources_app.errors import Conflict
from resources_app.history.documents import uri_of
from resources_app.reading.registry import target_of
from resources_app.writing import write_path
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession, current_etag
from tests.factories import as_actor, make_task
from tests.resources_app.acting import address, again, everything, write

pytestmark = pytest.mark.django_db


def test_a_stale_etag_conflicts_with_the_diff_from_the_callers_version(
    alice: User, carol: User
) -> None:
    task = make_task(description="one\ntwo\nthree\n")
    seen = write(alice, task, "description", type="append", content="four\n")["etag"]
    write(carol, task, "title", type="set", value="Elsewhere")
    write(carol, task, "description", type="str_replace", old_str="two", new_str="2")
    latest = write(carol, task, "description", type="append", content="five\n")["etag"]
    before = everything()
    with pytest.raises(Conflict) as caught:
        write(alice, task, "description", etag=seen, type="append", content="mine\n")
    assert everything() == before
    details = caught.value.details
    assert (details["current_etag"], details["current_version"]) == (latest, 5)
    changed = [line for line in details["diff"].split("\n")[2:] if line[0] in "+-"]
    assert changed == ["-two", "+2", "+five"]
    assert caught.value.retryable
    assert (
        write(alice, task, "description", etag=latest, type="append", content="mine\n")["version"]
        == 6
    )


def test_a_stale_etag_of_the_whole_shows_every_field_that_changed(alice: User, carol: User) -> None:
    task = make_task(title="Old")
    seen = current_etag(task, target_of(parse(address(task))))
    write(carol, task, type="merge", value={"title": "New", "status": "done"})
    with pytest.raises(Conflict) as caught:
        write(alice, task, etag=seen, type="set", field="priority", value="high")
    assert set(caught.value.details["diff"]) == {"title", "status"}
    assert caught.value.details["diff"]["status"] == {"before": "open", "after": "done"}


def test_a_stale_etag_of_a_value_shows_before_and_after(alice: User, carol: User) -> None:
    task = make_task()
    seen = write(alice, task, "status", type="set", value="in_progress")["etag"]
    write(carol, task, "status", type="set", value="done")
    with pytest.raises(Conflict) as caught:
        write(alice, task, "status", etag=seen, type="set", value="blocked")
    assert caught.value.details["diff"] == {"before": "in_progress", "after": "done"}


def test_a_value_that_came_back_still_conflicts(alice: User, carol: User) -> None:
    task = make_task()
    seen = write(alice, task, "status", type="set", value="done")["etag"]
    write(carol, task, "status", type="set", value="open")
    write(carol, task, "status", type="set", value="done")
    with pytest.raises(Conflict):
        write(alice, task, "status", etag=seen, type="set", value="blocked")


def test_editors_of_different_fields_never_conflict(alice: User, carol: User) -> None:
    task = make_task(description="a")
    hers = write(alice, task, "description", type="append", content="b")["etag"]
    theirs = write(carol, task, "title", type="set", value="New")["etag"]
    write(alice, task, "description", etag=hers, type="append", content="c")
    write(carol, task, "title", etag=theirs, type="set", value="Newer")
    assert (again(task).title, again(task).description) == ("Newer", "abc")


def test_without_an_etag_an_operation_applies_to_what_is_there(alice: User, carol: User) -> None:
    task = make_task(description="a\n")
    write(carol, task, "description", type="append", content="b\n")
    write(alice, task, "description", type="append", content="c\n")
    assert again(task).description == "a\nb\nc\n"


def test_the_etag_is_checked_before_the_operation_is_tried(alice: User, carol: User) -> None:
    task = make_task(description="old text")
    seen = current_etag(task, target_of(parse(address(task, "description"))))
    write(carol, task, "description", type="set", value="new text")
    with pytest.raises(Conflict):
        write(alice, task, "description", etag=seen, type="str_replace", old_str="old", new_str="")


def test_archiving_checks_the_etag_too(alice: User, carol: User) -> None:
    task = make_task()
    seen = current_etag(task, target_of(parse(address(task))))
    write(carol, task, "title", type="set", value="New")
    with pytest.raises(Conflict):
        write_path.archive(as_actor(alice), uri_of(task), seen)
    assert again(task).archived_at is None


def test_a_conflict_is_told_when_the_row_moved_although_it_was_locked(alice: User) -> None:
    """Check that the UPDATE itself also rejects what row locks already prevent."""
    stale = make_task()
    write(alice, stale, "title", type="set", value="Moved")
    edit = Edit({"type": "set"}, {"title": "Lost"})
    with pytest.raises(Conflict):
        WriteSession(as_actor(alice)).save(stale, edit, uri=uri_of(stale), action="update")
    assert again(stale).title == "Moved"
