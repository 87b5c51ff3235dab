"""Test real workers and schedulers: work interrupted when they, Redis or the database died is still
done, once.
"""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest
from django.db import connection

from backlog_site.devserver.embedded import end_group, running_valkey
from resources_app.intelligencebank.fake.service import FakeIB
from tests.faults.fixture.settings import TICK_SECONDS
from tests.faults.surroundings import (
    PATIENCE_SECONDS,
    beat,
    eventually,
    frozen,
    kill_postgres,
    query,
    readiness,
    served,
    worker,
)
from tests.intelligencebank.mirrors import all_ids
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD, fill_tenant, running_fake
from tests.mcp.site import Site
from tests.other_processes import run
from tests.servers.postgres import running_postgres

JOBS = 20
ROWS, TASKS = 300, 300

ENQUEUE = """
import sys
from resources_app.jobs import queue as jobs
for n in range(int(sys.argv[1]), int(sys.argv[2])):
    jobs.enqueue("mark", {"n": n})
"""
FILL_AND_REQUEST = """
import sys
from django.utils import timezone
from resources_app.jobs import queue as jobs
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.sync import scheduling
from resources_app.models import Task
now = timezone.now()
rows = [Task(number=100 + n, title=f"Needle {n}", created_at=now, updated_at=now) for n in range(int(sys.argv[1]))]
Task.objects.bulk_create(rows)
connection = connections.create("BnK4JV", "Library", sys.argv[2], email=sys.argv[3], password=sys.argv[4])
scheduling.request_run(connection, "full")
jobs.enqueue("reindex", {}, key="reindex")
"""
SYNCS = "SELECT status FROM resources_app_ibsyncrun"
MIRRORED = "SELECT count(*) FROM resources_app_ibresource"
REBUILDS = "SELECT state FROM resources_app_job WHERE kind = 'reindex'"
INDEXED = (
    "SELECT count(*) FROM search_app_document WHERE slot = (SELECT building FROM"
    " search_app_indexstate)"
)
JOBS_NOW = "SELECT kind, state, last_error FROM resources_app_job"
TICKS = (
    "SELECT created_at FROM resources_app_job WHERE key = 'mark' AND state = 'done' ORDER BY"
    " created_at"
)
FOUND = """
import json
from resources_app.models import IBConnection
from search_app.index.rebuild import index_health
from tests.faults.fixture.settings import TICK_SECONDS
from tests.intelligencebank.mirrors import visible_rows
connection = IBConnection.objects.get()
print(json.dumps({"rows": sorted(visible_rows(connection)), "index": index_health()["status"]}))
"""


def marks(site: Site) -> Counter[str]:
    log = site.log.parent / "marks"
    return (
        Counter(line for line in log.read_text().splitlines() if line != "tick")
        if log.exists()
        else Counter()
    )


def enqueue(site: Site, first: int) -> None:
    run(site.environment, ENQUEUE, first, first + JOBS)


def are_done(site: Site, until: int) -> bool:
    return eventually(lambda: len(marks(site)) >= until)


def test_losing_redis_and_all_it_held_costs_time_and_no_work(
    redis_url: str, redis_home: Path
) -> None:
    with served(redis_url) as (site, http, _), worker(site), beat(site):
        with running_valkey(redis_url, redis_home):
            enqueue(site, 0)
            assert are_done(site, JOBS)
        enqueue(site, JOBS)
        assert readiness(http, site) == "degraded"
        shutil.rmtree(redis_home)
        with running_valkey(redis_url, redis_home):
            assert are_done(site, 2 * JOBS)
            with frozen(redis_url):
                enqueue(site, 2 * JOBS)
            assert are_done(site, 3 * JOBS)
            assert eventually(lambda: readiness(http, site) == "ok")
        assert marks(site) == Counter(map(str, range(3 * JOBS)))


def ticks(site: Site) -> list[datetime]:
    return [datetime.fromisoformat(str(at)) for (at,) in query(site, TICKS)]


def test_two_schedulers_give_one_run_for_each_tick(redis_url: str, redis_home: Path) -> None:
    with running_valkey(redis_url, redis_home), served(redis_url) as (site, _, _), worker(site):
        with beat(site, "one"), beat(site, "other"):
            assert eventually(lambda: len(ticks(site)) >= 4)
        times = ticks(site)
        assert all(
            (later - sooner).total_seconds() > TICK_SECONDS / 2 for sooner, later in pairwise(times)
        ), times


def is_in_the_middle(site: Site) -> bool:
    """Return whether both the mirror and the index are half done."""
    return all(rows > 0 for [(rows,)] in (query(site, MIRRORED), query(site, INDEXED)))


def is_all_done(site: Site) -> bool:
    return query(site, SYNCS) == [("complete",)] and query(site, REBUILDS) == [("done",)]


@contextmanager
def halted_in_the_middle(site: Site, fake: FakeIB) -> Iterator[None]:
    """Halt the worker while it mirrors a library and rebuilds the index, and resume both when the
    block ends.
    """
    hold, may_go_on = site.log.parent / "hold", threading.Event()
    fake.between = lambda query: (
        query.stage != "resources" or query.offset == 0 or may_go_on.wait(PATIENCE_SECONDS)
    )
    hold.touch()
    try:
        run(
            site.environment,
            FILL_AND_REQUEST,
            TASKS,
            fake.urls["platform"],
            SERVICE,
            SERVICE_PASSWORD,
        )
        assert eventually(lambda: is_in_the_middle(site)), query(site, JOBS_NOW)
        yield
    finally:
        hold.unlink()
        may_go_on.set()


def check_all_is_done(site: Site, fake: FakeIB) -> None:
    assert eventually(lambda: is_all_done(site)), query(site, JOBS_NOW)
    found = json.loads(run(site.environment, FOUND))
    assert set(found["rows"]) == all_ids(fake)
    assert found["index"] == "ok"


def library(fake: FakeIB) -> dict[str, str]:
    fill_tenant(fake, resources=ROWS)
    return {"BACKLOG_IB_LOCAL_ORIGINS": ",".join(fake.urls.values()), "BACKLOG_LOCK_SECONDS": "30"}


def test_what_a_killed_worker_was_doing_is_finished_by_the_next(
    redis_url: str, redis_home: Path
) -> None:
    with (
        running_valkey(redis_url, redis_home),
        running_fake() as fake,
        served(redis_url, **library(fake)) as (site, *_),
    ):
        with worker(site) as process, halted_in_the_middle(site, fake):
            end_group(process)
        with worker(site), beat(site):
            check_all_is_done(site, fake)


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has no server that could be killed"
)
def test_what_was_being_done_when_the_database_was_killed_is_finished_afterwards(
    redis_url: str, redis_home: Path, postgres_home: Path, postgres_url: str
) -> None:
    with ExitStack() as stack:
        stack.enter_context(running_valkey(redis_url, redis_home))
        fake = stack.enter_context(running_fake())
        server = stack.enter_context(running_postgres(postgres_url, postgres_home))
        site, *_ = stack.enter_context(
            served(redis_url, DATABASE_URL=postgres_url, **library(fake))
        )
        stack.enter_context(worker(site))
        with halted_in_the_middle(site, fake):
            kill_postgres(server, postgres_url)
        stack.enter_context(running_postgres(postgres_url, postgres_home))
        stack.enter_context(beat(site))
        check_all_is_done(site, fake)
