"""Test kill -9 at twenty random points of two runs: the mirror ends as if nothing had happened.

`TEST_IB_ROWS=250000` uses a tenant of the largest existing size, and takes a quarter of an hour.
"""

import os
import random
import signal
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from resources_app.history import change_log
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
ROWS = int(os.environ.get("TEST_IB_ROWS", "800"))
# A page has about five events: half of the kills are spread over the whole run, however long it is.
MOST_EVENTS = max(14, ROWS // 90 * 5 * 2 // (KILLS // 2))
PATIENCE_SECONDS = max(600, ROWS // 50)


def account_of(client_id: str) -> str:
    return f"{client_id}@example.com"


def change_both(fake: FakeIB) -> None:
    """Change both tenants equally: some rows deleted, some new, some changed."""
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


def first_runs(platform_url: str, seed: int) -> dict[str, Any]:
    """Sync new tenants; in one of them the worker dies repeatedly."""
    _hurry()
    for client_id in TENANTS:
        account = {"email": account_of(client_id), "password": SERVICE_PASSWORD}
        connections.create(client_id, "Library", platform_url, **account)
    return _kill_and_compare(seed)


def later_runs(seed: int) -> dict[str, Any]:
    """Sync tenants with some rows deleted, some new and most unchanged."""
    _hurry()
    return _kill_and_compare(seed)


def _hurry() -> None:
    settings.IB_RATE_SECONDS = 0.01
    # A dead worker must not keep the tenant's lease for long.
    runs.LEASE = timedelta(0)


def _kill_and_compare(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    deaths: list[bool] = []
    megabytes = [0]
    while sum(deaths) < KILLS // 2:
        died, most = _killed_after(chance.randint(1, MOST_EVENTS))
        deaths.append(died)
        megabytes.append(most)
    statuses = [sync(IBConnection.objects.get(client_id=client_id)).status for client_id in TENANTS]
    broken, whole = (
        content(IBConnection.objects.get(client_id=client_id)) for client_id in TENANTS
    )
    return {
        "kills": sum(deaths),
        "statuses": statuses,
        "rows": len(whole),
        "differences": [pair for pair in zip(whole, broken, strict=True) if pair[0] != pair[1]][:3],
        "hidden": sum("True" in str(row) for row in whole),
        "megabytes_of_a_worker": max(megabytes),
    }


def _killed_after(events: int) -> tuple[bool, int]:
    """Run a child that dies at event number `events`: a call, or a page's beginning, middle or end.

    Return whether it died, and its peak memory.
    """
    leave_database()
    if not (child := os.fork()):
        _arm(events)
        run = runs.start(IBConnection.objects.get(client_id=TENANTS[0]), "full")
        working.work(run, working.ENDLESS)
        os._exit(0)
    _, status, used = os.wait4(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, used.ru_maxrss // 1024


def _arm(events: int) -> None:
    left = [events]

    def tick(*_: Any) -> None:
        left[0] -= 1
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    change_log.listen_to_mirror(tick)
    for owner, name in (
        (runs, "hold"),
        (IBClient, "fetch"),
        (Crawl, "_counters"),
        (Crawl, "look_ahead"),
    ):
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
        seeds = [random.randrange(10**6) for _ in range(2)]
        found = [
            send(variables, first_runs, fake.urls["platform"], seeds[0], patience=PATIENCE_SECONDS)
        ]
        change_both(fake)
        found.append(send(variables, later_runs, seeds[1], patience=PATIENCE_SECONDS))
    print(seeds, found)
    for one in found:
        assert one["kills"] == KILLS // 2 and one["statuses"] == ["complete", "complete"], found
        assert not one["differences"] and one["rows"] >= ROWS, found
    assert found[1]["hidden"] >= 40, found
