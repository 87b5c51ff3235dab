"""kill -9 at twenty random points of a run: the mirror ends as if nothing had happened."""

import os
import random
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from resources_app import changes
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.client import IBClient
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.sync import runs, working
from resources_app.intelligencebank.sync.crawl import Crawl
from resources_app.models import IBConnection
from tests.concurrency.crew import leave_database, send
from tests.intelligencebank.mirrors import content, sync
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD, fill_tenant, running_fake
from tests.other_processes import shared_environment

KILLS = 20
TENANTS = ("Broken1", "Whole22")
ROWS = 800


def account_of(client_id: str) -> str:
    return f"{client_id}@example.com"


def change_both(fake: FakeIB) -> None:
    """The same in both: some gone, some new, some changed."""
    for client_id in TENANTS:
        tenant = fake.tenants[client_id]
        ids = [
            tenant.resource_row(number, tenant.people[account_of(client_id)], "", "")["_id"]
            for number in tenant.live[:200]
        ]
        for ib_id in ids[::5]:
            tenant.delete(ib_id)
        for ib_id in ids[1::5]:
            tenant.update(ib_id, name=f"changed {ib_id}")
        tenant.fill(30, list(tenant.folders))


def connect_and_sync(client_id: str, platform_url: str) -> str:
    account = {"email": account_of(client_id), "password": SERVICE_PASSWORD}
    return sync(connections.create(client_id, "Library", platform_url, **account)).status


def first_runs(platform_url: str) -> list[str]:
    _hurry()
    return [connect_and_sync(client_id, platform_url) for client_id in TENANTS]


def _hurry() -> None:
    settings.IB_RATE_SECONDS = 0.01
    # Whoever died must not keep the tenant for long.
    runs.LEASE = timedelta(0)


def kill_again_and_again(seed: int) -> dict[str, Any]:
    _hurry()
    chance = random.Random(seed)
    kills = 0
    connection = IBConnection.objects.get(client_id=TENANTS[0])
    runs.start(connection, "full")
    while kills < KILLS:
        kills += _killed_after(chance.randint(1, 14))
    statuses = [_finish(client_id) for client_id in TENANTS]
    whole, broken = (content(IBConnection.objects.get(client_id=client_id)) for client_id in reversed(TENANTS))
    return {
        "kills": kills,
        "statuses": statuses,
        "rows": len(whole),
        "differences": [pair for pair in zip(whole, broken, strict=True) if pair[0] != pair[1]][:3],
        "hidden": sum("True" in str(row) for row in whole),
    }


def _finish(client_id: str) -> str:
    return sync(IBConnection.objects.get(client_id=client_id)).status


def _killed_after(events: int) -> bool:
    """A child works on the run and dies at the so-manieth event: a call, a page's beginning, middle or end."""
    leave_database()
    if not (child := os.fork()):
        _arm(events)
        run = runs.start(IBConnection.objects.get(client_id=TENANTS[0]), "full")
        working.work(run, working.ENDLESS)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _arm(events: int) -> None:
    left = [events]

    def tick(*_: Any) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    changes.listen_to_mirror(tick)
    for owner, name in ((runs, "hold"), (IBClient, "fetch"), (Crawl, "_counters"), (Crawl, "look_ahead")):
        _tick_around(owner, name, tick)


def _tick_around(owner: Any, name: str, tick: Any) -> None:
    original = getattr(owner, name)

    def ticking(*arguments: Any, **options: Any) -> Any:
        tick()
        return original(*arguments, **options)

    setattr(owner, name, ticking)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_run_killed_at_twenty_points_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    with running_fake() as fake:
        for client_id in TENANTS:
            people = fill_tenant(fake, client_id, ROWS).people
            people[account_of(client_id)] = people.pop(SERVICE)
        variables = shared_environment(
            tmp_path, BACKLOG_DB_POOL="1", BACKLOG_IB_LOCAL_ORIGINS=",".join(fake.urls.values())
        )
        assert send(variables, first_runs, fake.urls["platform"]) == ["complete", "complete"]
        change_both(fake)
        found = send(variables, kill_again_and_again, random.randrange(10**6))
    assert found["kills"] == KILLS and found["statuses"] == ["complete", "complete"]
    assert not found["differences"] and found["rows"] > ROWS and found["hidden"] >= 40, found
