"""Test which addresses a change touches, which users may watch what, and how the feed is read."""

import datetime
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from resources_app.errors import BacklogError, InvalidOperation, InvalidUri, NotFound
from resources_app.models import Change, Task
from resources_app.reading import by_address, watching
from resources_app.reading.watching import (
    Position,
    changes_after,
    end_of_feed,
    matches,
    may_watch,
    visible_among,
)
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, make_user, system, task_uri

pytestmark = pytest.mark.django_db


def last_change() -> Change:
    return Change.objects.order_by("-pk")[0]


def change_field(task: Task, field: str, value: Any) -> Change:
    write_path.write(system(), task_uri(task, field), {"type": "set", "value": value})
    return last_change()


def of(task: Task, *rest: str) -> str:
    return task_uri(task, *rest)


def test_a_change_touches_its_item_its_field_and_what_is_made_of_the_whole() -> None:
    task, other = make_task(), make_task()
    change = change_field(task, "title", "New")
    for touched in (
        "",
        "/title",
        "/file",
        "/metadata",
        "/versions",
        "/title/versions",
        "/updated_at",
        "/version",
        "/etag",
    ):
        assert matches(change, of(task) + touched), touched
    for untouched in (
        "/description",
        "/status",
        "/schema",
        "/created_at",
        "/comments",
        "/no_such_field",
    ):
        assert not matches(change, of(task) + untouched), untouched
    assert not matches(change, of(other))
    assert not matches(change, of(other, "title"))


def test_an_element_is_touched_with_its_list_and_a_field_by_either_of_its_names() -> None:
    task, epic = make_task(evidence=["one"]), make_epic()
    assert matches(change_field(task, "evidence", ["one", "two"]), of(task, "evidence", "1"))
    moved = change_field(task, "epic_id", epic.ref)
    assert matches(moved, of(task, "parent_id"))
    assert matches(moved, of(task, "epic_id"))


def test_a_task_and_an_epic_with_the_same_number_are_two_things() -> None:
    make_epic()
    change = last_change()
    assert matches(change, "mcp://backlog/epics/EPIC-0001")
    assert not matches(change, "mcp://backlog/tasks/TASK-0001")
    assert matches(change, "mcp://backlog/epics")
    assert not matches(change, "mcp://backlog/tasks")


def test_the_feed_is_touched_by_everything_and_other_schemes_by_nothing() -> None:
    make_task()
    assert matches(last_change(), "mcp://backlog/changes?since=0.5")
    assert not matches(last_change(), "admin://users")


COLLECTIONS = {
    "status=open": True,
    "status=blocked": True,
    "status=done": False,
    "status=done&status=open": True,
    "filter=status:open": True,
    "filter=status!=open": True,
    "filter=status!=open,status!=blocked": False,
    "priority=high": True,
    "filter=priority>=high": True,
    "filter=priority>high": False,
    "label=api": True,
    "label=ui": False,
    "filter=label!=api": False,
    "assignee=alice": True,
    "assignee=bob": False,
    "assignee=": False,
    "epic_id=EPIC-0001": True,
    "parent_id=EPIC-0002": False,
    "epic_id=": False,
    "id=TASK-0001": True,
    "id=TASK-0002": False,
    'filter=title~"LOG"': True,
    "filter=title~deploy": False,
    "search=fix login": True,
    "search=fix nothing": False,
    "search=api": True,
    "search=fixes": True,
    "assignee=@me": True,
    "depends_on=": True,
    "depends_on=TASK-0009": False,
    "filter=due_date<2026-02-01": True,
    "filter=due_date>2026-02-01": False,
    "due_date=2026-01-31": True,
    "limit=1&sort=title&order=asc": True,
    "aggregate=count&group_by=status": True,
    "ready=true": True,
    "filter=created_at>2101-01-01": False,
    "created_at=today": True,
    "filter=updated_at<2001-01-01": False,
    "filter=description~": True,
    "epic_id=hidden": True,
}


@pytest.mark.parametrize(("query", "touched"), COLLECTIONS.items(), ids=COLLECTIONS)
def test_a_collection_is_touched_by_what_was_in_it_before_or_after(
    alice: User, query: str, touched: bool
) -> None:
    make_epic()
    task = make_task(
        title="Fix the login",
        priority="high",
        labels=["api"],
        assignee="alice",
        epic_id="EPIC-0001",
        due_date="2026-01-31",
    )
    change = change_field(task, "status", "blocked")
    assert matches(change, f"mcp://backlog/tasks?{query}") is touched


@pytest.mark.parametrize(
    "query",
    ["status=open", "status=done", "label=api", "epic_id=", "search=first", "assignee=alice"],
)
def test_the_collections_say_the_same_as_the_query_itself(alice: User, query: str) -> None:
    """Compare with the query: every task that is or was in its results counts as touching it, and
    no other.
    """
    uri = f"mcp://backlog/tasks?{query}"
    writes = [
        lambda: make_task(title="first", labels=["api"]),
        lambda: make_task(title="second", status="done", assignee="alice"),
        lambda: change_field(Task.objects.get(pk=1), "labels", ["ui"]),
        lambda: change_field(Task.objects.get(pk=1), "status", "done"),
        lambda: change_field(Task.objects.get(pk=2), "assignee", None),
        lambda: write_path.archive(system(), "mcp://backlog/tasks/TASK-0001"),
        lambda: change_field(Task.objects.get(pk=2), "description", "long"),
    ]
    for write in writes:
        before = by_address.read(system(), uri).contents["results"]
        write()
        change = last_change()
        seen = [*before, *by_address.read(system(), uri).contents["results"]]
        assert matches(change, uri) is (change.ref in {item["id"] for item in seen})


def test_archiving_leaves_the_tasks_and_enters_the_archive() -> None:
    task = make_task()
    created = last_change()
    write_path.archive(system(), of(task))
    archived = last_change()
    assert not matches(created, "mcp://backlog/archive")
    for uri in (
        "mcp://backlog/archive",
        "mcp://backlog/tasks",
        f"mcp://backlog/archive/{task.ref}",
        of(task, "archived_at"),
    ):
        assert matches(archived, uri), uri
    assert not matches(archived, "mcp://backlog/archive?type=epic")


def test_the_tasks_of_an_epic_are_touched_when_one_comes_goes_or_changes() -> None:
    first, second, task = make_epic(), make_epic(), make_task(epic_id="EPIC-0001")
    moved = change_field(task, "epic_id", second.ref)
    assert matches(moved, f"mcp://backlog/epics/{first.ref}/tasks")
    assert matches(moved, f"mcp://backlog/epics/{second.ref}/tasks?status=open")
    assert not matches(moved, f"mcp://backlog/epics/{second.ref}/tasks?status=done")
    assert not matches(change_field(task, "title", "New"), f"mcp://backlog/epics/{first.ref}/tasks")


def test_finishing_a_task_touches_what_was_waiting_for_it() -> None:
    needed = make_task()
    make_task(depends_on=[needed.ref])
    assert matches(
        change_field(needed, "status", "done"), "mcp://backlog/tasks?ready=true&label=api"
    )


def test_a_comment_touches_the_comments_of_its_item(alice: User) -> None:
    task, other = make_task(), make_task()
    comment = write_path.add_comment(as_actor(alice), of(task), "Hello")
    change = last_change()
    for touched in (
        of(task, "comments"),
        "mcp://backlog/comments",
        f"mcp://backlog/comments?item={task.ref}",
    ):
        assert matches(change, touched), touched
    assert matches(change, f"mcp://backlog/comments/{comment.pk}")
    for untouched in (
        of(task),
        of(other, "comments"),
        f"mcp://backlog/comments?item={other.ref}",
        "mcp://backlog/tasks",
    ):
        assert not matches(change, untouched), untouched


def test_a_file_touches_the_folders_above_it_and_no_neighbour() -> None:
    stored_files.create_resource(system(), "resources/plans/q1/goals.md", "text")
    change = last_change()
    for touched in ("", "/plans", "/plans/q1", "/plans/q1/goals.md"):
        assert matches(change, f"mcp://backlog/resources{touched}"), touched
    for untouched in (
        "resources/plan",
        "resources/plans/q1/goals",
        "artifacts",
        "resources/plans/q1/goals.md/x",
    ):
        assert not matches(change, f"mcp://backlog/{untouched}"), untouched


def test_a_file_that_moves_touches_where_it_was_and_where_it_is() -> None:
    stored_files.create_resource(system(), "resources/old/a.md", "text")
    stored_files.move(system(), "resources/old/a.md", "resources/new/a.md")
    change = last_change()
    for touched in (
        "resources/old",
        "resources/old/a.md",
        "resources/new",
        "resources/new/a.md",
        "resources",
    ):
        assert matches(change, f"mcp://backlog/{touched}"), touched
    assert not matches(change, "mcp://backlog/resources/other")


def test_whoever_may_read_may_watch_and_others_learn_nothing(bob: User, mallory: User) -> None:
    open_task, hidden = make_task(), make_task(groups=["admin"])
    assert may_watch(as_actor(bob), of(open_task))
    for user, uri in (
        (bob, of(hidden)),
        (bob, of(hidden, "title")),
        (mallory, of(open_task)),
        (mallory, "mcp://backlog/tasks"),
    ):
        with pytest.raises(NotFound):
            may_watch(as_actor(user), uri)


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("mcp://backlog/tasks/TASK-0001@v1", InvalidUri),
        ("mcp://backlog/tasks/TASK-0001?version=1", InvalidUri),
        ("mcp://backlog/tasks/TASK-0001/schema", InvalidOperation),
        ("metadata://templates", InvalidOperation),
        ("mcp://backlog/tasks?nonsense=1", BacklogError),
        ("nonsense", InvalidUri),
    ],
)
def test_what_cannot_change_cannot_be_watched(
    bob: User, uri: str, error: type[BacklogError]
) -> None:
    make_task()
    with pytest.raises(error):
        may_watch(as_actor(bob), uri)


def test_visibility_is_that_of_the_moment(bob: User) -> None:
    task = make_task()
    change = last_change()
    assert visible_among(bob.pk, [change.pk]) == {change.pk}
    write_path.write(system(), of(task, "groups"), {"type": "set", "value": ["admin"]})
    assert visible_among(bob.pk, [change.pk]) == set()
    bob.groups.add(Group.objects.get(name="admin"))
    assert visible_among(bob.pk, [change.pk]) == {change.pk}
    User.objects.filter(pk=bob.pk).update(is_active=False)
    assert visible_among(bob.pk, [change.pk]) == set()


def test_a_notice_tells_the_etag_that_a_reader_of_the_address_gets(bob: User) -> None:
    task = make_task(evidence=["one"])
    for field, value in (("title", "New"), ("evidence", ["two"])):
        change = change_field(task, field, value)
        for part in ((), (field,), ("file",), ("metadata",)):
            told = watching.describe(change, of(task, *part))
            assert told["etag"] == by_address.read(as_actor(bob), of(task, *part)).etag
    assert (told["author"], told["change"]["fields"]) == ("carol", ["evidence"])
    assert watching.describe(change, "mcp://backlog/tasks")["etag"] is None


def test_the_list_of_resources_is_altered_by_what_comes_and_goes() -> None:
    task = make_task()
    assert watching.alters_list(last_change())
    assert not watching.alters_list(change_field(task, "title", "New"))
    write_path.add_comment(system(), of(task), "Hello")
    assert not watching.alters_list(last_change())
    write_path.archive(system(), of(task))
    assert watching.alters_list(last_change())


def test_an_address_below_one_thing_is_lost_with_it() -> None:
    for uri in (
        "mcp://backlog/tasks/TASK-0001",
        "mcp://backlog/tasks/TASK-0001/title",
        "mcp://backlog/comments/1",
    ):
        assert watching.names_one_thing(uri)
    for uri in (
        "mcp://backlog/tasks",
        "mcp://backlog/epics/EPIC-0001/tasks",
        "mcp://backlog/resources/a",
    ):
        assert not watching.names_one_thing(uri)


def test_positions_compare_in_the_order_of_the_feed_and_survive_as_text() -> None:
    assert Position(1, 9) < Position(2, 1) < Position(2, 3)
    assert Position.parse(str(Position(12, 34))) == Position(12, 34)
    for nonsense in ("", "1", "1.2.3", "a.b", "-1.2", "1." + "9" * 30, "١.٢"):
        with pytest.raises(BacklogError):
            Position.parse(nonsense)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_pages_of_changes_follow_each_other_without_gap_or_overlap() -> None:
    make_user("carol", "admin")
    start = end_of_feed()
    for number in range(7):
        make_task(title=f"Task {number}")
    everything = changes_after(start, 100).changes
    assert len(everything) == 7
    pages, position = [], start
    while (page := changes_after(position, 3)).changes:
        pages.append([change.pk for change in page.changes])
        position = page.end
    assert [pk for page in pages for pk in page] == [change.pk for change in everything]
    assert position == end_of_feed()
    middle = watching.position_of(everything[3])
    bounded = changes_after(start, 100, until=middle)
    assert [change.pk for change in bounded.changes] == [change.pk for change in everything[:4]]
    assert (bounded.end, bounded.more) == (middle, True)


def test_a_list_by_words_is_watched_as_it_is_read(alice: User) -> None:
    """Match every text in the index, comments included, also when the words are removed."""
    task = make_task(title="Quiet", labels=["zebra"], evidence=["a giraffe"])
    change = change_field(task, "status", "blocked")
    for words, touched in {"zebra": True, "giraffes": True, "kraken": False}.items():
        assert matches(change, f"mcp://backlog/tasks?search={words}") is touched
        assert found_by(alice, words) is touched
    write_path.add_comment(as_actor(alice), of(task), "The kraken was here")
    assert matches(last_change(), "mcp://backlog/tasks?search=kraken") and found_by(alice, "kraken")
    assert not matches(last_change(), "mcp://backlog/tasks?search=walrus")
    assert not matches(last_change(), "mcp://backlog/epics?search=kraken")
    gone = change_field(task, "labels", [])
    assert matches(gone, "mcp://backlog/tasks?search=zebra") and not found_by(alice, "zebra")


def found_by(user: User, words: str) -> bool:
    return bool(
        by_address.read(as_actor(user), f"mcp://backlog/tasks?search={words}").contents["total"]
    )


def test_a_task_that_waits_is_not_in_the_list_of_ready_ones() -> None:
    needed = make_task()
    waiting = make_task(depends_on=[needed.ref])
    renamed = change_field(waiting, "title", "Still waiting")
    assert not matches(renamed, "mcp://backlog/tasks?ready=true")
    assert matches(renamed, "mcp://backlog/tasks?ready=false")
    change_field(needed, "status", "done")
    assert matches(change_field(waiting, "title", "Go"), "mcp://backlog/tasks?ready=true")


def test_an_imported_task_leaves_the_list_of_its_old_time() -> None:
    moment = datetime.datetime(2001, 1, 1, tzinfo=datetime.UTC)
    task = write_path.create_item(system(), "task", {"title": "Old"}, created_at=moment)
    edited = change_field(Task.objects.get(pk=task.pk), "title", "New")
    assert matches(edited, "mcp://backlog/tasks?filter=updated_at<2002-01-01")
    again = change_field(Task.objects.get(pk=task.pk), "title", "Newer")
    assert not matches(again, "mcp://backlog/tasks?filter=updated_at<2002-01-01")
    assert matches(again, "mcp://backlog/tasks?filter=created_at<2002-01-01")


def test_a_comment_touches_a_list_by_words_under_its_other_conditions(alice: User) -> None:
    task = make_task(status="blocked")
    comment = write_path.add_comment(as_actor(alice), of(task), "The kraken was here")
    said = last_change()
    assert matches(said, "mcp://backlog/tasks?search=kraken&status=blocked")
    assert not matches(said, "mcp://backlog/tasks?search=kraken&status=open")
    uri = f"mcp://backlog/comments/{comment.pk}"
    write_path.write(as_actor(alice), uri, {"type": "set", "value": "It left"})
    assert matches(last_change(), "mcp://backlog/tasks?search=kraken&status=blocked")
    assert not matches(last_change(), "mcp://backlog/tasks?search=kraken&status=open")


def test_the_words_of_a_short_beginning_are_those_of_titles() -> None:
    task = make_task(title="Quiet", description="Zebras")
    change = change_field(task, "status", "blocked")
    for words, touched in {"qu": True, "ze": False, "zebr": True, "title": False}.items():
        assert matches(change, f"mcp://backlog/tasks?search={words}") is touched
