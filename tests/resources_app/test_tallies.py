"""Test that a list's total from counters equals counting the rows, after any sequence of writes."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from resources_app.jobs import queue
from resources_app.models import Job, Tally, Task
from resources_app.querying import counters
from resources_app.reading.by_address import read
from resources_app.vocabulary import Priority, Status
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, make_user

GROUPED = ("status", "priority")


def total(user: User, query: str = "", collection: str = "tasks") -> int:
    return read(as_actor(user), f"mcp://backlog/{collection}{query}").contents["total"]


def groups(user: User, column: str, query: str = "") -> dict[str, int]:
    return read(
        as_actor(user), f"mcp://backlog/tasks?aggregate=count&group_by={column}{query}"
    ).contents


def counted(user: User, **conditions: object) -> int:
    return Task.objects.visible_to(user).live().filter(**conditions).count()


def check(user: User) -> None:
    assert total(user) == counted(user)
    assert read(as_actor(user), "mcp://backlog/tasks?aggregate=count").contents == {
        "count": counted(user)
    }
    assert groups(user, "status") == {
        choice.label: counted(user, status=choice) for choice in Status
    }
    assert groups(user, "priority") == {
        choice.label: counted(user, priority=choice) for choice in Priority
    }
    assert total(user, "?status=open&status=done") == counted(
        user, status__in=[Status.OPEN, Status.DONE]
    )
    assert total(user, "?filter=status!=open,priority:high") == counted(
        user, priority=Priority.HIGH
    ) - counted(user, priority=Priority.HIGH, status=Status.OPEN)


@pytest.mark.django_db
def test_everyone_is_told_the_number_of_what_they_see(
    alice: User, bob: User, carol: User, mallory: User
) -> None:
    Group.objects.create(name="design").user_set.add(alice)
    make_task(title="For all")
    make_task(title="For designers", groups=["design"])
    make_task(title="Done", status="done", priority="high")
    assert [total(user) for user in (alice, bob, carol)] == [3, 2, 3]
    assert groups(bob, "status", "&priority=high") == dict.fromkeys(Status.labels, 0) | {"done": 1}
    for user in (alice, bob, carol):
        check(user)
    assert counters.count(Task, mallory, ()) == 0


@pytest.mark.django_db
def test_epics_are_counted_apart(bob: User) -> None:
    make_epic()
    make_task()
    make_task()
    assert (total(bob, collection="epics"), total(bob)) == (1, 2)


@pytest.mark.django_db
def test_the_number_of_an_unfiltered_list_does_not_look_at_the_tasks(bob: User) -> None:
    make_task()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert total(bob, "?status=open&limit=1") == 1
    counting = [
        query["sql"]
        for query in queries
        if "COUNT(" in query["sql"] and "resources_app_task" in query["sql"]
    ]
    assert all('"restricted"' in sql for sql in counting)


@pytest.mark.django_db
def test_adding_up_changes_no_number(bob: User) -> None:
    for status in Status.labels:
        make_task(status=status)
    before = groups(bob, "status")
    for _ in range(2):
        job = queue.enqueue("compact_tallies", {})
        queue.run(queue.claim(job.pk))
        assert Job.objects.get(pk=job.pk).state == Job.State.DONE
    assert Tally.objects.count() == len(Status.labels)
    assert groups(bob, "status") == before


@pytest.mark.django_db
def test_every_so_many_steps_a_job_is_asked_to_add_them_up(
    bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "COMPACTED_EVERY", 1)
    make_task()
    assert Job.objects.filter(kind="compact_tallies", state=Job.State.PENDING).count() == 1


@pytest.mark.django_db
def test_a_recount_repairs_what_was_filled_past_the_write_path(bob: User) -> None:
    make_task()
    Tally.objects.all().delete()
    counters.recount()
    check(bob)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "create",
                "status",
                "priority",
                "restrict",
                "open",
                "archive",
                "unarchive",
                "delete",
                "nothing",
            ]
        ),
        st.integers(0, 4),
    ),
    max_size=12,
)


class EveryHistory(TestCase):
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(ACTIONS)
    def test_leaves_the_number_that_counting_gives(self, actions: list[tuple[str, int]]) -> None:
        carol, bob = make_user("carol", "admin"), make_user("bob", "viewer")
        Group.objects.get_or_create(name="design")
        actor = as_actor(carol)
        tasks = [make_task()]
        for action, choice in actions:
            uri = f"mcp://backlog/tasks/{tasks[choice % len(tasks)].ref}" if tasks else ""
            _act(actor, action, choice, uri, tasks)
        check(carol)
        check(bob)


def _act(actor: object, action: str, choice: int, uri: str, tasks: list[Task]) -> None:
    def put(**values: object) -> None:
        if Task.objects.live().filter(pk=tasks[choice % len(tasks)].pk).exists():
            write_path.write(actor, uri, {"type": "merge", "value": values})

    if action == "create" or not tasks:
        tasks.append(make_task(status=Status.labels[choice], priority=Priority.labels[choice]))
    elif action in GROUPED:
        put(**{action: (Status if action == "status" else Priority).labels[choice]})
    elif action in {"restrict", "open"}:
        put(groups=["design"] if action == "restrict" else [])
    elif action == "delete":
        write_path.delete_permanently(actor, uri)
        del tasks[choice % len(tasks)]
    elif action in {"archive", "unarchive"}:
        getattr(write_path, action)(actor, uri)
