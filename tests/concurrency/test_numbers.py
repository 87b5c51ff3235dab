"""Test twenty processes that create many objects each at once: every number is used once,
without gaps.
"""

from itertools import chain

from resources_app.models import Task
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_epic, make_task, system
from tests.repeats import repeats

CREATORS, EACH = 20, repeats(24, full=100)


def create_in_turn(creator: int) -> list[str]:
    actor = system()
    line_up()
    makes = [make_epic if number % 4 == 0 else make_task for number in range(EACH)]
    return [make(actor=actor, title=f"Made by {creator}").ref for make in makes]


def create_together() -> dict[str, list[str]]:
    system()
    refs = together(create_in_turn, range(CREATORS))
    return {
        "answered": list(chain.from_iterable(refs)),
        "stored": [task.ref for task in Task.objects.order_by("pk")],
    }


def test_twenty_at_once_get_their_numbers_without_a_gap(variables: dict[str, str]) -> None:
    found = send(variables, create_together)
    tasks = [f"TASK-{number:04d}" for number in range(1, CREATORS * EACH * 3 // 4 + 1)]
    epics = [f"EPIC-{number:04d}" for number in range(1, CREATORS * EACH // 4 + 1)]
    assert sorted(found["answered"]) == sorted(tasks + epics)
    assert found["stored"] == tasks
