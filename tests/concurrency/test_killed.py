"""Test kill -9 in the middle of an atomic batch: nothing of it remains; acknowledged writes do."""

import os
import signal
import time
from typing import Any

from django.db import transaction

from resources_app.history import change_log
from resources_app.models import Change, IdempotencyKey, Revision, Task
from resources_app.writing.batches import write_batch
from tests.concurrency.crew import leave_database, send
from tests.factories import make_task, system, task_uri

BATCH = 500
# The number of the 500 writes after which the process is killed; the last one is written but not
# committed.
POINTS = (1, 120, 250, 499, 500)


def append(content: str) -> dict[str, Any]:
    return {
        "uri": task_uri(Task.objects.get(), "description"),
        "operation": {"type": "append", "content": content},
    }


def write_and_halt(point: int, signals: int) -> None:
    """Acknowledge a small batch, start the large one, and halt at the point until killed."""
    actor, written = system(), 0
    write_batch(actor, [append(f"kept {point}\n")] * 2)
    os.write(signals, b"acknowledged\n")

    def halt(*_: object) -> None:
        nonlocal written
        written += 1
        if written == point:
            os.write(signals, b"half way\n")
            time.sleep(600)

    change_log.listen(halt)
    write_batch(actor, [append(f"lost {point}\n")] * BATCH)


def commit_and_halt(signals: int) -> None:
    """Commit under a key and halt before acknowledging it, to be killed there."""
    operation = append("committed\n")

    def halt() -> None:
        os.write(signals, b"committed\n")
        time.sleep(600)

    with transaction.atomic():
        transaction.on_commit(halt)
        write_batch(system(), [operation] * 3, idempotency_key="the key")


def killed(work: Any, *arguments: Any, after: bytes) -> bytes:
    """Return what the process signalled until it was killed."""
    leave_database()
    reading, writing = os.pipe()
    if not (child := os.fork()):
        work(*arguments, writing)
        os._exit(0)
    os.close(writing)
    heard = b""
    while after not in heard:
        part = os.read(reading, 100)
        assert part, f"the process ended early, after {heard!r}"
        heard += part
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    os.close(reading)
    return heard


def kill_half_way() -> dict[str, Any]:
    system()
    make_task()
    heard = [killed(write_and_halt, point, after=b"half way\n").decode() for point in POINTS]
    write_batch(system(), [append("afterwards\n")])
    task = Task.objects.get()
    revisions = Revision.objects.filter(kind="task", object_id=task.pk).order_by("version")
    return {
        "acknowledged": sum("acknowledged" in signals for signals in heard),
        "description": task.description,
        "version": task.version,
        "versions": list(revisions.values_list("version", flat=True)),
        "changes": Change.objects.count(),
    }


def kill_before_the_answer() -> dict[str, Any]:
    system()
    make_task()
    operations = [append("committed\n")] * 3
    killed(commit_and_halt, after=b"committed\n")
    there = Task.objects.get().description
    answers = [write_batch(system(), operations, idempotency_key="the key") for _ in range(2)]
    now = Task.objects.get().description
    return {"there": there, "now": now, "answers": answers, "keys": IdempotencyKey.objects.count()}


def test_nothing_of_an_unfinished_batch_remains_and_all_that_was_acknowledged_does(
    variables: dict[str, str],
) -> None:
    found = send(variables, kill_half_way)
    assert found["acknowledged"] == len(POINTS)
    kept = "".join(f"kept {point}\n" * 2 for point in POINTS)
    assert found["description"] == kept + "afterwards\n"
    assert found["versions"] == list(range(1, 2 * len(POINTS) + 3))
    assert found["version"] == found["changes"] == 2 * len(POINTS) + 2


def test_a_batch_committed_but_never_answered_is_found_again_by_its_key(
    variables: dict[str, str],
) -> None:
    found = send(variables, kill_before_the_answer)
    assert found["there"] == found["now"] == "committed\n" * 3
    assert found["answers"][0] == found["answers"][1]
    assert [result["version"] for result in found["answers"][0]["results"]] == [2, 3, 4]
    assert found["keys"] == 1
