"""Test fifty writers on twenty objects while readers follow the feed: each version once, and in
order.
"""

import time
from collections import Counter
from typing import Any

from django.contrib.auth.models import User

from resources_app.history import change_log
from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.concurrency.crew import PATIENCE_SECONDS, line_up, send, together
from tests.factories import make_task, system, task_uri

WRITERS, READERS, TASKS, EDITS = 50, 3, 20, 6
EXPECTED = TASKS + WRITERS * EDITS

Told = list[tuple[str, int, int]]


def write_or_follow(part: int) -> Told:
    """Write, or follow the feed by its cursor in the last processes, which are its sequencers."""
    actor, tasks = system(), list(Task.objects.order_by("number"))
    line_up()
    if part >= WRITERS:
        return follow(actor.user, EXPECTED)
    for edit in range(EDITS):
        task = tasks[(part + edit) % TASKS]
        write_path.write(
            actor, task_uri(task, "description"), {"type": "append", "content": f"{part}.{edit}\n"}
        )
    return []


def follow(user: User, expected: int) -> Told:
    told: Told = []
    since, deadline = "", time.monotonic() + PATIENCE_SECONDS
    while len(told) < expected and time.monotonic() < deadline:
        page, since = change_log.feed(user, since, 7)
        told += [(change.ref, change.version, change.position or 0) for change in page]
        if not page:
            time.sleep(0.01)
    return told


def write_while_others_follow() -> dict[str, Any]:
    system()
    for number in range(TASKS):
        make_task(title=f"Task {number}")
    told = together(write_or_follow, range(WRITERS + READERS))[WRITERS:]
    return {
        "told": told,
        "again": follow(system().user, EXPECTED),
        "versions": {task.ref: task.version for task in Task.objects.all()},
        "positions": list(Change.objects.order_by("position").values_list("position", flat=True)),
    }


def test_a_consumer_of_the_feed_ends_at_the_newest_state(variables: dict[str, str]) -> None:
    found = send(variables, write_while_others_follow)
    assert found["positions"] == list(range(1, EXPECTED + 1)), (
        "a position was skipped or given twice"
    )
    for told in (*found["told"], found["again"]):
        assert told == found["again"], "two readers were told different orders"
        state: Counter[str] = Counter()
        for ref, version, _ in told:
            assert version == state[ref] + 1, (
                f"the feed gave {ref} version {version} after {state[ref]}"
            )
            state[ref] = version
        assert state == found["versions"]
