"""Test that all workers together stay under the limit, and stop when the day's calls are used
up.
"""

import threading
from collections.abc import Callable

import pytest

from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.failures import BudgetSpent
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.limiting import SharedPace, connection_to_redis, spent_today
from resources_app.models import IBConnection
from tests.intelligencebank.mirrors import sync
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD


def at_once(workers: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_eight_workers_stay_under_the_limit(
    fake: FakeIB, connection: IBConnection, settings: object
) -> None:
    settings.IB_RATE_SECONDS = 3
    connection.calls_per_minute = 30
    session = connections.client_for(connection).login(SERVICE, SERVICE_PASSWORD)

    def work() -> None:
        client = connections.client_for(connection)
        for _ in range(6):
            client.fetch(session, api.folders_in(""))
        client.close()

    at_once(8, work)
    assert fake.calls("folders") == 48
    # The fake sees a call slightly after it was allowed: a few may slip from one window into the
    # next.
    assert fake.most_calls_within(3) <= 33


def test_the_hard_cap_holds_whatever_is_asked_for(connection: IBConnection) -> None:
    connection.calls_per_minute = 10_000
    assert SharedPace(connection).per_minute == 600


def test_limits_are_per_account_and_the_budget_is_per_tenant(connection: IBConnection) -> None:
    connection.daily_budget = 3
    pace = SharedPace(connection)
    pace("anna")
    pace("anna")
    pace("bert")
    assert spent_today(connection) == 3
    with pytest.raises(BudgetSpent):
        pace("bert")


def test_a_spent_budget_pauses_the_run_until_tomorrow(connection: IBConnection) -> None:
    IBConnection.objects.filter(pk=connection.pk).update(daily_budget=2)
    run = sync(connection)
    assert (run.status, run.error) == ("paused", "Today's API call budget is exhausted.")
    IBConnection.objects.filter(pk=connection.pk).update(daily_budget=1000)
    assert sync(connection).status == "complete"


def test_nobody_calls_when_nobody_can_count(
    connection: IBConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    import redis

    away = redis.Redis(host="127.0.0.1", port=1, socket_connect_timeout=0.1)
    monkeypatch.setattr("resources_app.intelligencebank.limiting.connection_to_redis", lambda: away)
    with pytest.raises(BudgetSpent, match="Redis"):
        SharedPace(connection)("anna")
    assert connection_to_redis().ping()


def test_many_workers_open_one_session(fake: FakeIB, connection: IBConnection) -> None:
    sync(connection)
    before = fake.calls("login")
    fake.expire_sessions()
    sync(connection, "incremental")
    assert fake.calls("login") == before + 1
