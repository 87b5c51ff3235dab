"""Test that one poll serves many watches: each from its own position, each in order, nothing
twice.
"""

import asyncio

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.bus import (
    MAX_WAITING_NOTICES,
    RESOURCE_LIST,
    Notice,
    Rules,
    Span,
    Watcher,
    _collect,
    _hand_out,
    _next_of,
)
from backlog_site.mcp.context import Caller
from resources_app.errors import BacklogError
from resources_app.identity.credentials import Credential
from resources_app.reading import watching
from resources_app.reading.watching import Position
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, system, task_uri

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)


def watcher_of(user: User, *uris: str) -> Watcher:
    watcher = Watcher(Caller(Credential("token", 0, user, "read", "test"), "secret"))
    for uri in uris:
        watcher.watch(uri, watching.end_of_feed())
    return watcher


def rename(uri: str, title: str) -> None:
    write_path.write(system(), uri, {"type": "set", "field": "title", "value": title})


def poll(*watchers: Watcher) -> None:
    """Poll until nothing is left, as the poller does."""
    more = True
    while more:
        more = False
        for watcher in watchers:
            for span in {span for span, _ in _next_of(watcher)}:
                pairs = [(watcher, watch) for one, watch in _next_of(watcher) if one == span]
                deliveries, unread = _collect(span, pairs, Rules())
                more |= unread
                _hand_out(deliveries)


def told(watcher: Watcher) -> list[tuple[str, int]]:
    notices = []
    while not watcher._notices.empty():
        notice = watcher._notices.get_nowait()
        notices.append((notice.uri, notice.meta.get("change", {}).get("version", 0)))
    return notices


def test_polling_again_tells_nothing_twice_and_forgets_nothing(bob: User) -> None:
    uri = task_uri(make_task())
    watcher = watcher_of(bob, uri)
    rename(uri, "two")
    poll(watcher)
    poll(watcher)
    rename(uri, "three")
    rename(uri, "four")
    poll(watcher)
    assert told(watcher) == [(uri, 2), (uri, 3), (uri, 4)]


def test_a_watch_that_starts_behind_the_others_is_told_in_the_order_of_the_feed(bob: User) -> None:
    first, second = task_uri(make_task()), task_uri(make_task())
    behind = watching.end_of_feed()
    rename(first, "a")
    rename(second, "b")
    watcher = watcher_of(bob, second)
    rename(first, "c")
    rename(second, "d")
    watcher.watch(first, behind)
    poll(watcher)
    assert told(watcher) == [(first, 2), (first, 3), (second, 3)]
    assert {watch.position for watch in watcher.watches.values()} == {watching.end_of_feed()}


def test_more_changes_than_a_page_holds_are_all_told(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backlog_site.mcp.bus.PAGE", 3)
    uri = task_uri(make_task())
    watcher = watcher_of(bob, uri, "mcp://backlog/tasks")
    for number in range(8):
        rename(uri, f"title {number}")
    poll(watcher)
    versions = [version for _, version in told(watcher)]
    assert versions == sorted([*range(2, 10), *range(2, 10)])


def test_many_changes_of_the_list_are_one_notice(bob: User) -> None:
    watcher = watcher_of(bob, RESOURCE_LIST)
    for _ in range(5):
        make_task()
    poll(watcher)
    assert told(watcher) == [(RESOURCE_LIST, 0)]


def test_what_a_user_may_not_see_is_not_told_and_the_lost_address_is_dropped(
    bob: User, carol: User
) -> None:
    uri = task_uri(make_task())
    watcher, admin = (
        watcher_of(bob, uri, "mcp://backlog/tasks", RESOURCE_LIST),
        watcher_of(carol, uri),
    )
    write_path.write(system(), uri, {"type": "set", "field": "groups", "value": ["admin"]})
    make_task(groups=["admin"])
    poll(watcher, admin)
    assert told(watcher) == []
    assert (watcher.lost, set(watcher.watches)) == ([uri], {"mcp://backlog/tasks", RESOURCE_LIST})
    assert told(admin) == [(uri, 2)]


def test_what_was_unwatched_during_a_poll_is_not_told(bob: User) -> None:
    uri = task_uri(make_task())
    watcher = watcher_of(bob, uri)
    rename(uri, "two")
    [(span, watch)] = _next_of(watcher)
    deliveries, _ = _collect(span, [(watcher, watch)], Rules())
    watcher.unwatch(uri)
    _hand_out(deliveries)
    assert told(watcher) == []


def test_a_stream_that_does_not_read_is_closed_and_loses_no_notice_it_was_given(bob: User) -> None:
    watcher = watcher_of(bob)
    for number in range(MAX_WAITING_NOTICES + 5):
        watcher.offer(Notice("mcp://backlog/tasks", Position(0, number)))
    assert watcher.is_closed

    async def read() -> list[Notice]:
        return [notice async for notice in watcher.notices()]

    assert len(asyncio.run(read())) == MAX_WAITING_NOTICES


def test_watches_that_have_read_equally_far_share_one_span(bob: User, carol: User) -> None:
    uri = task_uri(make_task())
    spans = {
        span
        for watcher in (watcher_of(bob, uri, RESOURCE_LIST), watcher_of(carol, uri))
        for span, _ in _next_of(watcher)
    }
    assert spans == {Span(watching.end_of_feed(), None)}


def test_a_list_by_an_epic_that_was_hidden_notifies_nobody_whom_it_no_longer_answers(
    bob: User, carol: User
) -> None:
    epic = make_epic()
    task = make_task(epic_id=epic.ref)
    lists = [
        f"mcp://backlog/tasks?epic_id={epic.ref}",
        f"mcp://backlog/tasks?filter=parent_id:{epic.ref}",
        f"mcp://backlog/epics/{epic.ref}/tasks",
    ]
    reader, admin = watcher_of(bob, *lists), watcher_of(carol, *lists)
    rename(task_uri(task), "Seen by both")
    poll(reader, admin)
    assert {uri for uri, _ in told(reader)} == {uri for uri, _ in told(admin)} == set(lists)
    write_path.write(
        system(),
        f"mcp://backlog/epics/{epic.ref}/groups",
        {"type": "set", "value": ["admin"]},
    )
    for uri in lists:
        with pytest.raises(BacklogError):
            watching.may_watch(as_actor(bob), uri)
    rename(task_uri(task), "Seen by the admin as part of the epic")
    poll(reader, admin)
    assert told(reader) == []
    assert {uri for uri, _ in told(admin)} == set(lists)
