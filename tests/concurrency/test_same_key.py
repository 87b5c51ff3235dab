"""Test the same request with the same key, eight times at once: one effect, eight equal answers."""

import json
from typing import Any

from resources_app.errors import ValidationFailed
from resources_app.models import IdempotencyKey, Task
from resources_app.writing.batches import write_batch
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_task, system, task_uri

SENDERS = 8


def append_once(content: str) -> str:
    actor, task = system(), Task.objects.get()
    operations = [
        {"uri": task_uri(task, "description"), "operation": {"type": "append", "content": content}}
    ]
    line_up()
    try:
        return json.dumps(write_batch(actor, operations, idempotency_key="the key"))
    except ValidationFailed as error:
        return error.details["field"]


def send_together(contents: list[str]) -> dict[str, Any]:
    system()
    make_task()
    answers = together(append_once, contents)
    task = Task.objects.get()
    return {
        "answers": answers,
        "description": task.description,
        "version": task.version,
        "keys": IdempotencyKey.objects.count(),
    }


def test_one_effect_and_eight_equal_answers(variables: dict[str, str]) -> None:
    found = send(variables, send_together, ["x"] * SENDERS)
    assert len(set(found["answers"])) == 1
    assert json.loads(found["answers"][0])["results"][0]["version"] == 2
    assert (found["description"], found["version"], found["keys"]) == ("x", 2, 1)


def test_different_requests_with_one_key_have_one_winner_and_the_others_are_told(
    variables: dict[str, str],
) -> None:
    found = send(variables, send_together, [f"{sender}" for sender in range(SENDERS)])
    refused = [answer for answer in found["answers"] if answer == "idempotency_key"]
    assert len(refused) == SENDERS - 1
    assert (len(found["description"]), found["version"], found["keys"]) == (1, 2, 1)
