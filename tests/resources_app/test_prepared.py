"""Test that prepared queries return what the queryset itself returns, for each value, caller and
thread.
"""

import gc
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import CharField
from django.test.utils import CaptureQueriesContext

from resources_app.database import prepared as module
from resources_app.database.prepared import BoundedCache, Param, Prepared, prepared, run_for
from resources_app.models import Task
from resources_app.reading.by_address import read
from tests.factories import as_actor, make_task


@pytest.mark.django_db
def test_rows_come_as_from_the_queryset_with_what_belongs_to_them(alice: User) -> None:
    tasks = [
        make_task(title="One", assignee="alice", labels=["a"]),
        make_task(title="Two"),
        make_task(title="One"),
    ]
    asked = Prepared(
        Task.objects.filter(title=Param("title", CharField()))
        .select_related("assignee")
        .order_by("pk")
    )
    first, last = asked.run(title="One")
    assert (first.pk, last.pk) == (tasks[0].pk, tasks[2].pk)
    assert (
        first.labels == ["a"] and last.assignee is None and first.created_at == tasks[0].created_at
    )
    connection.force_debug_cursor = True
    try:
        before = len(connection.queries_log)
        assert first.assignee == alice and len(connection.queries_log) == before, "came with it"
    finally:
        connection.force_debug_cursor = False
    assert [task.pk for task in asked.run(title="Two")] == [tasks[1].pk]
    assert asked.run(title="Three") == []


@pytest.mark.django_db
def test_what_can_match_nothing_asks_nothing() -> None:
    assert Prepared(Task.objects.filter(pk__in=[])).run() == []


@pytest.mark.django_db
@pytest.mark.parametrize("count", [0, 1, 2, 5, 6, 21, 101])
def test_several_numbers_of_any_count(count: int) -> None:
    tasks = [make_task(title=f"Task {number}") for number in range(3)]
    numbers = [task.pk for task in tasks[: min(count, 3)]] + list(
        range(10**6, 10**6 + max(0, count - 3))
    )
    found = run_for(numbers, "test", lambda given: Task.objects.filter(pk__in=given).order_by("pk"))
    assert [task.pk for task in found] == [task.pk for task in tasks[: min(count, 3)]]


def test_memory_is_bounded_and_makes_once() -> None:
    memory: BoundedCache[int] = BoundedCache(3)
    assert [memory.get(key, lambda key=key: key * 10) for key in (1, 2, 1, 2)] == [10, 20, 10, 20]
    for key in range(100):
        memory.get(key, lambda: 1)
        assert len(memory._made) <= 3


@pytest.mark.django_db
def test_people_share_a_query_only_with_those_who_see_the_same(
    alice: User, bob: User, carol: User
) -> None:
    Group.objects.create(name="design").user_set.add(alice)
    make_task(title="For designers", groups=["design"])
    make_task(title="For all")

    def titles(user: User) -> list[str]:
        fresh = User.objects.get(pk=user.pk)
        return sorted(
            row["title"] for row in read(as_actor(fresh), "mcp://backlog/tasks").contents["results"]
        )

    for _ in range(2):
        assert titles(alice) == titles(carol) == ["For all", "For designers"]
        assert titles(bob) == ["For all"]
    Group.objects.get(name="design").user_set.add(bob)
    Group.objects.get(name="design").user_set.remove(alice)
    assert (titles(alice), titles(bob)) == (["For all"], ["For all", "For designers"])


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_what_one_thread_prepared_another_runs_on_its_own_connection() -> None:
    task = make_task(title="Shared")
    asked = prepared("test of threads", lambda: Task.objects.filter(title="Shared"))

    def elsewhere() -> list[int]:
        try:
            return [found.pk for found in asked.run()]
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as threads:
        assert (
            threads.submit(elsewhere).result() == [found.pk for found in asked.run()] == [task.pk]
        )
    assert module._prepared.get("test of threads", lambda: Prepared(Task.objects.none())) is asked


@pytest.mark.django_db
@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no statements that it plans ahead"
)
@pytest.mark.parametrize("is_behind_bouncer", [False, True])
def test_what_is_asked_often_is_planned_once_unless_a_bouncer_is_between(
    is_behind_bouncer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", is_behind_bouncer)
    make_task(title="Often")
    columns = ("pk", "created_at") if is_behind_bouncer else ("pk",)
    asked = Prepared(Task.objects.filter(title=Param("title", CharField())).values_list(*columns))
    for title in ("Often", "Seldom") * 4:
        assert len(asked.run(title=title)) == (title == "Often")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans + custom_plans > 1 FROM pg_prepared_statements WHERE statement"
            " = %s",
            [asked._sql.replace("%s", "$1")],
        )
        assert cursor.fetchall() == ([] if is_behind_bouncer else [(True,)])
    assert connection.connection.prepare_threshold is None, (
        "the values of other statements would be remembered"
    )
    with CaptureQueriesContext(connection) as queries:
        asked.run(title="Often")
    assert "'Often'" in queries[0]["sql"]


@pytest.mark.django_db
def test_rows_do_not_wait_for_the_garbage_collector() -> None:
    make_task(title="Long")
    asked = Prepared(Task.objects.filter(title="Long"))
    asked.run()
    gc.collect()
    gc.disable()
    try:
        assert len(asked.run()) == 1
        assert not [left for left in gc.get_objects() if type(left) is module._Run]
    finally:
        gc.enable()
