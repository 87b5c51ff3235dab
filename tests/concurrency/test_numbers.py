"""Twenty processes create at once: twenty numbers, none twice, none left out."""

from resources_app.models import Task
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_epic, make_task, system

CREATORS = 20


def create_one(number: int) -> str:
    actor = system()
    line_up()
    make = make_epic if number % 4 == 0 else make_task
    return make(actor=actor, title=f"Made by {number}").ref


def create_together() -> dict[str, list[str]]:
    system()
    refs = together(create_one, range(CREATORS))
    return {"answered": refs, "stored": [task.ref for task in Task.objects.order_by("pk")]}


def test_twenty_at_once_get_twenty_numbers_without_a_gap(variables: dict[str, str]) -> None:
    found = send(variables, create_together)
    tasks = [f"TASK-{number:04d}" for number in range(1, 16)]
    epics = [f"EPIC-{number:04d}" for number in range(1, 6)]
    assert sorted(found["answered"]) == sorted(tasks + epics)
    assert found["stored"] == tasks
