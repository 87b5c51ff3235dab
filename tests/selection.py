"""Mark the tests by what they cost and need, leave out of PostgreSQL those that use no database, and
start the longest files first.
"""

from pathlib import Path

import pytest
from django.db import connection

FOLDER = Path(__file__).parent
DATABASE_FIXTURES = {"db", "transactional_db", "live_server"}
# These start processes, but test protocols, texts and signals in which no database takes part.
ONE_DATABASE = (
    "backlog_site/test_embedded.py",
    "backlog_site/test_rates.py",
    "backlog_site/test_settings.py",
    "backlog_site/test_supervisor.py",
    "bench/",
    "faults/test_shutdown.py",
    "faults/test_slow_clients.py",
    "mcp/test_connecting.py",
    "mcp/test_guard.py",
    "mcp/test_limits.py",
    "mcp/test_log_lines.py",
    "mcp/test_prompt_names.py",
    "mcp/test_stdio.py",
    "servers/",
)
PROCESS_FIXTURES = {"site", "library"}
PROCESS = (
    *ONE_DATABASE,
    "concurrency/",
    "faults/",
    "intelligencebank/test_killed.py",
    "mcp/",
    "resources_app/test_create_token.py",
    "resources_app/test_jobs_across_processes.py",
    "search_app/test_rebuilding.py",
)
SLOW = (
    "architecture/",
    "fuzz/",
    "intelligencebank/test_faults.py",
    "resources_app/test_demo.py",
    "resources_app/test_query_plans.py",
    "resources_app/test_round_trip.py",
    "security/test_regular_expressions.py",
    "security/test_restricted.py",
    "security/test_routes.py",
    "viewer/test_highlighting.py",
)
# Two workers end together when the files that take minutes come first.
LONGEST = (
    "parity/test_get_resource.py",
    "bench/",
    "backlog_site/test_supervisor.py",
    "resources_app/test_jobs_across_processes.py",
    "faults/",
    "concurrency/",
    "security/test_regular_expressions.py",
    "parity/",
    "fuzz/",
    "mcp/",
    "intelligencebank/",
    *SLOW,
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if place(item).startswith(PROCESS) or PROCESS_FIXTURES & fixtures(item):
            item.add_marker("process")
        if place(item).startswith(SLOW):
            item.add_marker("slow")
        if place(item).startswith(ONE_DATABASE) or not may_use_database(item):
            item.add_marker("one_database")
    if hasattr(config, "workerinput"):  # files that are named run whole, in one process
        if connection.vendor == "postgresql":
            leave_out(config, items, "one_database")
        items.sort(key=length_rank)


def place(item: pytest.Item) -> str:
    return item.path.relative_to(FOLDER).as_posix()


def fixtures(item: pytest.Item) -> set[str]:
    return set(getattr(item, "fixturenames", ()))


def may_use_database(item: pytest.Item) -> bool:
    """Return whether the test has a database, starts processes that have one, or skips for one."""
    marked = any(item.get_closest_marker(name) for name in ("django_db", "process", "skipif"))
    return marked or bool(DATABASE_FIXTURES & fixtures(item))


def leave_out(config: pytest.Config, items: list[pytest.Item], marker: str) -> None:
    deselected = [item for item in items if item.get_closest_marker(marker)]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker(marker)]


def length_rank(item: pytest.Item) -> int:
    found = (rank for rank, start in enumerate(LONGEST) if place(item).startswith(start))
    return next(found, len(LONGEST))
