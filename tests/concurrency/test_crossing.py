"""Test writes that touch the same rows in opposite orders: they wait for each other, and
constraints hold.
"""

from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.models import Task, TaskDependency
from resources_app.writing import write_path
from resources_app.writing.batches import write_batch
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_task, system, task_uri

PAIRS, WRITERS, ROUNDS = 6, 4, 6


def depend(pair: list[str]) -> bool:
    actor = system()
    uri = f"mcp://backlog/tasks/{pair[0]}/depends_on"
    line_up()
    try:
        write_path.write(actor, uri, {"type": "array_append", "value": pair[1]})
    except ValidationFailed:
        return False
    return True


def close_cycles_together() -> dict[str, Any]:
    """Make each pair of tasks depend on each other, from both sides at once."""
    system()
    pairs = [(make_task().ref, make_task().ref) for _ in range(PAIRS)]
    accepted = together(
        depend, [pair for one, other in pairs for pair in ([one, other], [other, one])]
    )
    return {"accepted": accepted, "rows": TaskDependency.objects.count()}


def test_a_cycle_is_not_closed_from_both_sides_at_once(variables: dict[str, str]) -> None:
    found = send(variables, close_cycles_together)
    sides = zip(found["accepted"][::2], found["accepted"][1::2], strict=True)
    assert [sum(pair) for pair in sides] == [1] * PAIRS
    assert found["rows"] == PAIRS


def batch_over_all(writer: int) -> int:
    """Write to all tasks. Every second writer starts from the end."""
    actor = system()
    tasks = list(Task.objects.order_by("pk" if writer % 2 else "-pk"))
    operations = [
        {
            "uri": task_uri(task, "description"),
            "operation": {"type": "append", "content": f"{writer}\n"},
        }
        for task in tasks
    ]
    line_up()
    return sum(
        len(write_batch(actor, operations, atomic=bool(number % 2))["results"])
        for number in range(ROUNDS)
    )


def cross_together() -> dict[str, Any]:
    system()
    for _ in range(5):
        make_task()
    done = together(batch_over_all, range(WRITERS))
    return {"done": done, "texts": [task.description for task in Task.objects.all()]}


def test_batches_over_the_same_rows_in_opposite_orders_do_not_deadlock(
    variables: dict[str, str],
) -> None:
    found = send(variables, cross_together)
    assert found["done"] == [5 * ROUNDS] * WRITERS
    assert {tuple(sorted(text.split())) for text in found["texts"]} == {
        tuple(sorted("0123" * ROUNDS))
    }
    assert len(set(found["texts"])) == 1, (
        "the rows are locked as a whole, so all see the batches in one order"
    )
