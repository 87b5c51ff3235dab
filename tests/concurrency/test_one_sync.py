"""Test eight processes that request a sync of one tenant, and eight schedulers that tick, at once:
one run each.
"""

from typing import Any

from resources_app import tasks
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.sync import scheduling
from resources_app.jobs import queue
from resources_app.models import IBConnection, IBSyncRun, Job
from tests.concurrency.crew import line_up, send, together

STARTERS = 8


def request(_: int) -> int:
    connection = IBConnection.objects.get()
    line_up()
    return scheduling.request_run(connection, "full").pk


def request_together() -> dict[str, Any]:
    connections.create(
        "BnK4JV", "Demo", "https://demo.intelligencebank.com", email="e", password="p"
    )
    asked = together(request, range(STARTERS))
    return {"asked": asked, "runs": IBSyncRun.objects.count(), "jobs": Job.objects.count()}


def tick(_: int) -> None:
    """Send a scheduler's message, and run as a worker what it finds."""
    line_up()
    _tick()


def _tick() -> None:
    tasks.enqueue_scheduled("prune", every=3600)
    queue.sweep()


def tick_together() -> list[str]:
    """Tick many times at once, and once more when the work is done."""
    together(tick, range(STARTERS))
    _tick()
    return list(Job.objects.values_list("state", flat=True))


def test_syncs_requested_at_once_are_one(variables: dict[str, str]) -> None:
    found = send(variables, request_together)
    assert len(set(found["asked"])) == found["runs"] == found["jobs"] == 1


def test_ticks_of_many_schedulers_are_one_run(variables: dict[str, str]) -> None:
    assert send(variables, tick_together) == ["done"]
