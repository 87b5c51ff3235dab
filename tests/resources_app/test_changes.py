"""The change feed: in the order of commits, for those who see the thing, and never skipping a late one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection

from resources_app import changes, writing
from resources_app.access import Person
from resources_app.documents import uri_of
from resources_app.errors import ValidationFailed
from resources_app.models import Change
from tests.factories import as_actor, make_task, system
from tests.resources_app.acting import write
from tests.resources_app.elsewhere import Elsewhere, overlapping

# Committed for real: on PostgreSQL the feed shows nothing of a transaction that still runs.
pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def walk(user: Person, since: str = "", limit: int = 100) -> tuple[list[Change], str]:
    found: list[Change] = []
    while True:
        page, since = changes.feed(user, since, limit)
        if not page:
            return found, since
        assert len(page) <= limit
        found += page


def settled(user: Person, count: int, since: str = "") -> list[Change]:
    """Other databases of the same server may have transactions running, which only delay the feed."""
    for _ in range(600):
        found, _cursor = walk(user, since)
        if len(found) >= count:
            return found
        time.sleep(0.1)
    raise AssertionError(f"the feed did not come to {count} changes")


def happened(found: list[Change]) -> list[tuple[str, int, str]]:
    return [(change.ref, change.version, change.action) for change in found]


def test_the_feed_tells_everything_once_in_the_order_it_happened(alice: User) -> None:
    one, two = make_task(), make_task()
    write(alice, one, "title", type="set", value="New")
    writing.archive(as_actor(alice), uri_of(two))
    expected = [(one.ref, 1, "create"), (two.ref, 1, "create"), (one.ref, 2, "update"), (two.ref, 2, "archive")]
    assert happened(settled(alice, 4)) == expected
    for limit in (1, 2, 3):
        assert happened(walk(alice, limit=limit)[0]) == expected


def test_a_cursor_goes_on_where_it_stopped(alice: User) -> None:
    task = make_task()
    settled(alice, 1)
    _, cursor = walk(alice)
    assert walk(alice, cursor) == ([], cursor)
    write(alice, task, "title", type="set", value="New")
    assert happened(settled(alice, 1, cursor)) == [(task.ref, 2, "update")]


def test_what_changed_nothing_and_what_was_rolled_back_is_not_told(alice: User) -> None:
    task = make_task()
    write(alice, task, "title", type="set", value="A task")
    writing.write(as_actor(alice), uri_of(task) + "/title", {"type": "set", "value": "Rehearsed"}, dry_run=True)
    with pytest.raises(ValidationFailed):
        write(alice, task, type="merge", value={"title": "Lost", "depends_on": ["TASK-0404"]})
    assert happened(settled(alice, 1)) == [(task.ref, 1, "create")]
    assert Change.objects.count() == 1


def test_the_feed_is_for_those_who_see_the_thing(alice: User, bob: User, carol: User, mallory: User) -> None:
    hidden, seen = make_task(groups=["admin"]), make_task()
    writing.add_comment(system(), uri_of(hidden), "hidden too")
    assert len(settled(carol, 3)) == 3
    for user in (alice, bob):
        assert happened(walk(user)[0]) == [(seen.ref, 1, "create")]
    for nobody in (mallory, AnonymousUser()):
        assert changes.feed(nobody, "", 10) == ([], "")


def test_a_thing_that_was_restricted_takes_its_whole_history_out_of_the_feed(bob: User, carol: User) -> None:
    task = make_task()
    settled(bob, 1)
    write(carol, task, "groups", type="set", value=["admin"])
    assert len(settled(carol, 2)) == 2
    assert walk(bob)[0] == []


@pytest.mark.parametrize(
    "since", ["x", "1", "1.2.3", "-1.2", "1.-2", "1.2 ", "١.٢", "1.9999999999999999999", "1.", ".1"]
)
def test_a_cursor_that_we_never_gave_out_is_refused(bob: User, since: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        changes.feed(bob, since, 10)
    assert caught.value.details == {"field": "since", "value": since}


def test_listeners_hear_of_a_change_inside_its_transaction(alice: User) -> None:
    heard: list[tuple[int, str, bool]] = []

    def listener(change: Change, thing: Any) -> None:
        heard.append((change.version, thing.title, connection.in_atomic_block))

    with listening(listener):
        task = make_task(title="First")
        write(alice, task, "title", type="set", value="Second")
    assert heard == [(1, "First", True), (2, "Second", True)]


def test_a_listener_that_fails_takes_the_write_with_it(alice: User) -> None:
    task = make_task()

    def listener(change: Change, thing: Any) -> None:
        raise ValidationFailed("The index is broken.")

    with listening(listener), pytest.raises(ValidationFailed):
        write(alice, task, "title", type="set", value="Lost")
    task.refresh_from_db()
    assert (task.title, task.version, Change.objects.count()) == ("A task", 1, 1)


@contextmanager
def listening(listener: changes.Listener) -> Iterator[None]:
    changes.listen(listener)
    try:
        yield
    finally:
        changes._listeners.remove(listener)


@overlapping
def test_a_transaction_that_commits_late_is_told_later_and_not_skipped(alice: User) -> None:
    early, late = make_task(title="early"), make_task(title="late")
    settled(alice, 2)
    _, cursor = walk(alice)
    with Elsewhere(lambda: write(alice, late, "title", type="set", value="late, as it was")) as elsewhere:
        write(alice, early, "title", type="set", value="early, as it was")
        write(alice, early, "title", type="set", value="early again")
        assert changes.feed(alice, cursor, 10) == ([], cursor), "told before an older transaction was over"
        elsewhere.commit()
    told = settled(alice, 3, cursor)
    assert happened(told) == [(late.ref, 2, "update"), (early.ref, 2, "update"), (early.ref, 3, "update")]
    assert told[0].txid < told[1].txid


@overlapping
def test_a_reader_who_polls_while_transactions_overlap_gets_every_change_once(alice: User) -> None:
    tasks = [make_task() for _ in range(4)]
    settled(alice, 4)
    _, cursor = walk(alice)
    told: list[Change] = []

    def poll() -> None:
        nonlocal cursor
        page, cursor = changes.feed(alice, cursor, 2)
        told.extend(page)

    def renaming(number: int) -> Elsewhere:
        return Elsewhere(lambda: write(alice, tasks[number], "title", type="set", value=f"{number}"))

    with renaming(0) as first, renaming(1) as second, renaming(2) as third:
        poll()
        second.commit()
        poll()
        write(alice, tasks[3], "title", type="set", value="3")
        poll()
        first.commit()
        poll()
        third.commit()
    for _ in range(600):
        if len(told) == 4:
            break
        poll()
        time.sleep(0.1)
    assert sorted(change.ref for change in told) == sorted(task.ref for task in tasks)
    assert [(change.txid, change.pk) for change in told] == sorted((change.txid, change.pk) for change in told)
