"""Test the change feed: in commit order, for users who see the object, and never skipping a late
change.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from resources_app.errors import ValidationFailed
from resources_app.history import change_log, sequencing
from resources_app.history.documents import uri_of
from resources_app.history.sequencing import SEQUENCED, Position
from resources_app.identity.roles import Person
from resources_app.models import Change
from resources_app.reading import watching
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, system
from tests.resources_app.acting import write
from tests.resources_app.elsewhere import Elsewhere, overlapping

# Really committed: other transactions overlap with those of the test.
pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def walk(user: Person, since: str = "", limit: int = 100) -> tuple[list[Change], str]:
    found: list[Change] = []
    while True:
        page, since = change_log.feed(user, since, limit)
        if not page:
            return found, since
        assert len(page) <= limit
        found += page


def happened(found: list[Change]) -> list[tuple[str, int, str]]:
    return [(change.ref, change.version, change.action) for change in found]


def test_the_feed_tells_everything_once_in_the_order_it_happened(alice: User) -> None:
    one, two = make_task(), make_task()
    write(alice, one, "title", type="set", value="New")
    write_path.archive(as_actor(alice), uri_of(two))
    expected = [
        (one.ref, 1, "create"),
        (two.ref, 1, "create"),
        (one.ref, 2, "update"),
        (two.ref, 2, "archive"),
    ]
    assert happened(walk(alice)[0]) == expected
    for limit in (1, 2, 3):
        assert happened(walk(alice, limit=limit)[0]) == expected


def test_a_cursor_goes_on_where_it_stopped(alice: User) -> None:
    task = make_task()
    _, cursor = walk(alice)
    assert walk(alice, cursor) == ([], cursor)
    write(alice, task, "title", type="set", value="New")
    assert happened(walk(alice, cursor)[0]) == [(task.ref, 2, "update")]


def test_what_changed_nothing_and_what_was_rolled_back_is_not_told(alice: User) -> None:
    task = make_task()
    write(alice, task, "title", type="set", value="A task")
    write_path.write(
        as_actor(alice),
        uri_of(task) + "/title",
        {"type": "set", "value": "Rehearsed"},
        dry_run=True,
    )
    with pytest.raises(ValidationFailed):
        write(alice, task, type="merge", value={"title": "Lost", "depends_on": ["TASK-0404"]})
    assert happened(walk(alice)[0]) == [(task.ref, 1, "create")]
    assert Change.objects.count() == 1


def test_the_feed_is_for_those_who_see_the_thing(
    alice: User, bob: User, carol: User, mallory: User
) -> None:
    hidden, seen = make_task(groups=["admin"]), make_task()
    write_path.add_comment(system(), uri_of(hidden), "hidden too")
    assert len(walk(carol)[0]) == 3
    for user in (alice, bob):
        assert happened(walk(user)[0]) == [(seen.ref, 1, "create")]
    for nobody in (mallory, AnonymousUser()):
        assert change_log.feed(nobody, "", 10) == ([], "")


def test_a_thing_that_was_restricted_takes_its_whole_history_out_of_the_feed(
    bob: User, carol: User
) -> None:
    task = make_task()
    write(carol, task, "groups", type="set", value=["admin"])
    assert len(walk(carol)[0]) == 2
    assert walk(bob)[0] == []


@pytest.mark.parametrize(
    "since",
    [
        "x",
        "1",
        "1.2.3",
        "-1.2",
        "1.-2",
        "1.2 ",
        "١.٢",
        "1.9999999999999999999",
        "1.",
        ".1",
        f"{SEQUENCED + 1}.1",
    ],
)
def test_a_cursor_that_we_never_gave_out_is_refused(bob: User, since: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        change_log.feed(bob, since, 10)
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
def listening(listener: change_log.Listener) -> Iterator[None]:
    change_log.listen(listener)
    try:
        yield
    finally:
        change_log._listeners.remove(listener)


@overlapping
def test_a_transaction_that_commits_late_is_told_later_and_not_skipped(alice: User) -> None:
    early, late = make_task(title="early"), make_task(title="late")
    _, cursor = walk(alice)
    with Elsewhere(
        lambda: write(alice, late, "title", type="set", value="late, as it was")
    ) as elsewhere:
        write(alice, early, "title", type="set", value="early, as it was")
        write(alice, early, "title", type="set", value="early again")
        told, cursor = walk(alice, cursor)
        assert happened(told) == [(early.ref, 2, "update"), (early.ref, 3, "update")], (
            "held back by an open transaction"
        )
        elsewhere.commit()
    assert happened(walk(alice, cursor)[0]) == [(late.ref, 2, "update")]


@overlapping
def test_a_reader_who_polls_while_transactions_overlap_gets_every_change_once(alice: User) -> None:
    tasks = [make_task() for _ in range(4)]
    _, cursor = walk(alice)
    told: list[Change] = []

    def poll() -> list[str]:
        nonlocal cursor
        page, cursor = change_log.feed(alice, cursor, 2)
        told.extend(page)
        return [change.ref for change in page]

    def renaming(number: int) -> Elsewhere:
        return Elsewhere(
            lambda: write(alice, tasks[number], "title", type="set", value=f"{number}")
        )

    with renaming(0) as first, renaming(1) as second, renaming(2) as third:
        assert poll() == []
        second.commit()
        assert poll() == [tasks[1].ref]
        write(alice, tasks[3], "title", type="set", value="3")
        assert poll() == [tasks[3].ref]
        first.commit()
        assert poll() == [tasks[0].ref]
        third.commit()
    assert poll() == [tasks[2].ref] and poll() == []
    assert [change.position for change in told] == sorted({change.position for change in told})


@overlapping
def test_a_transaction_in_another_database_of_the_server_delays_nothing(alice: User) -> None:
    task = make_task()
    _, cursor = walk(alice)
    parts = connection.settings_dict
    server = {
        "host": parts["HOST"],
        "port": parts["PORT"],
        "user": parts["USER"],
        "password": parts["PASSWORD"],
    }
    with psycopg.connect(**server, dbname="postgres") as other:
        other.execute("SELECT pg_current_xact_id()")
        write(alice, task, "title", type="set", value="New")
        assert happened(walk(alice, cursor)[0]) == [(task.ref, 2, "update")]
        assert [
            change.ref for change in watching.changes_after(Position.parse(cursor), 10).changes
        ] == [task.ref]
        assert other.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


def test_an_idle_feed_is_read_without_a_write(alice: User) -> None:
    make_task()
    walk(alice)
    with CaptureQueriesContext(connection) as asked:
        walk(alice)
        watching.end_of_feed()
    assert {query["sql"].split()[0] for query in asked} == {"SELECT"}


@overlapping
def test_a_feed_that_cannot_be_sequenced_shows_what_it_has(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencing, "LOCK_MILLISECONDS", 1)
    one = make_task()
    _, cursor = walk(alice)

    def hold_the_lock() -> None:
        with connection.cursor() as held:
            held.execute(f"SELECT pg_advisory_xact_lock({sequencing.LOCK_KEY})")

    with Elsewhere(hold_the_lock) as elsewhere:
        two = make_task()
        assert happened(walk(alice)[0]) == [(one.ref, 1, "create")]
        assert watching.changes_after(Position.parse(cursor), 10).more
        elsewhere.commit()
    assert happened(walk(alice, cursor)[0]) == [(two.ref, 1, "create")]


def as_an_older_release_wrote_them(*numbers: int) -> None:
    """Remove positions; on PostgreSQL give the last change the oldest transaction id."""
    Change.objects.update(position=None)
    for pk, txid in zip(
        Change.objects.order_by("pk").values_list("pk", flat=True), numbers, strict=True
    ):
        Change.objects.filter(pk=pk).update(txid=txid)


@pytest.mark.parametrize("txids", [(0, 0, 0, 0), (700, 701, 703, 702)])
def test_a_cursor_of_an_older_release_goes_on_without_a_gap(
    alice: User, txids: tuple[int, ...]
) -> None:
    for number in range(4):
        make_task(title=f"{number}")
    as_an_older_release_wrote_them(*txids)
    rows = list(Change.objects.order_by("txid", "pk"))
    for seen, row in enumerate(rows, start=1):
        told, cursor = walk(alice, f"{row.txid}.{row.pk}")
        assert {change.pk for change in told} >= {change.pk for change in rows[seen:]}
        assert [change.pk for change in told] == sorted(change.pk for change in told)
        assert walk(alice, cursor) == ([], cursor) and cursor.startswith(f"{SEQUENCED}.")
    task = make_task(title="after the upgrade")
    last = rows[-1]
    assert walk(alice, f"{last.txid}.{last.pk}")[0][-1].ref == task.ref


def test_more_changes_than_one_chunk_are_positioned_in_order(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        make_task(title=f"{number}")
    as_an_older_release_wrote_them(*range(7))
    monkeypatch.setattr(sequencing, "CHUNK", 3)
    monkeypatch.setattr(sequencing, "MAX_PASSES", 2)
    assert not sequencing.sequence()
    assert sequencing.sequence()
    assert [change.pk for change in walk(alice)[0]] == list(
        Change.objects.order_by("pk").values_list("pk", flat=True)
    )


@overlapping
def test_a_transaction_that_began_first_and_wrote_last_keeps_the_versions_in_order(
    alice: User,
) -> None:
    """Begin a transaction that gets the lower transaction id, and let another write the same task
    before it.
    """
    other, task = make_task(), make_task()
    _, cursor = walk(alice)
    with transaction.atomic():
        write(alice, other, "title", type="set", value="began first")
        with Elsewhere(lambda: write(alice, task, "title", type="set", value="two")) as elsewhere:
            elsewhere.commit()
        write(alice, task, "title", type="set", value="three")
    read = happened(walk(alice, cursor)[0])
    assert sorted(read) == sorted(
        [(other.ref, 2, "update"), (task.ref, 2, "update"), (task.ref, 3, "update")]
    )
    assert [version for ref, version, _ in read if ref == task.ref] == [2, 3]
