"""Test many processes that edit one description at once: every acknowledged edit is there, once,
and in the history.
"""

from functools import partial
from typing import Any

import pytest

from resources_app.history import revisions
from resources_app.history.documents import document_of
from resources_app.models import Change, Revision, Task
from resources_app.writing import write_path
from tests.concurrency.crew import line_up, send, together
from tests.factories import make_task, system, task_uri
from tests.repeats import IS_FULL

# Every tenth edit adds a line; the others count up in the writer's own line. The text stays short,
# so that the processes contend for the row and not for CPU.
APPENDS = 10
# Proves the same of a history of thousands of versions.
LONG_RUN = [(8, 500)] if IS_FULL else []


def edit_in_turn(writer: int, edits: int) -> int:
    """Return the number of acknowledged edits.

    Any error fails the crew: "database is locked", or a lost count.
    """
    actor, task = system(), Task.objects.get()
    line_up()
    count = 0
    for number in range(edits):
        operation = {
            "type": "str_replace",
            "old_str": f"<{writer}:{count}>",
            "new_str": f"<{writer}:{count + 1}>",
        }
        if number % APPENDS == 0:
            operation = {"type": "append", "content": f"{writer}.{number}\n"}
        else:
            count += 1
        write_path.write(actor, task_uri(task, "description"), operation)
    return edits


def edit_together(writers: int, edits: int) -> dict[str, Any]:
    system()
    make_task(description="".join(f"<{writer}:0>\n" for writer in range(writers)))
    acknowledged = together(partial(edit_in_turn, edits=edits), range(writers))
    task = Task.objects.get()
    versions = Revision.objects.filter(kind="task", object_id=task.pk).order_by("version")
    return {
        "acknowledged": sum(acknowledged),
        "lines": task.description.splitlines(),
        "versions": list(versions.values_list("version", flat=True)),
        "changes": list(Change.objects.order_by("version").values_list("version", flat=True)),
        "is_replayed": revisions.document_at("task", task.pk, task.version) == document_of(task),
        "appended": [
            len(_at(task, version).splitlines()) for version in range(1, task.version + 1, 97)
        ],
    }


def _at(task: Task, version: int) -> str:
    return str(revisions.document_at("task", task.pk, version)["description"])


@pytest.mark.parametrize(("writers", "edits"), [(16, 100), *LONG_RUN])
def test_no_edit_is_lost_among_many_writers(
    variables: dict[str, str], writers: int, edits: int
) -> None:
    found = send(variables, edit_together, writers, edits)
    assert found["acknowledged"] == writers * edits
    counted = edits - edits // APPENDS
    assert found["lines"][:writers] == [f"<{writer}:{counted}>" for writer in range(writers)]
    for writer in range(writers):
        own = [line for line in found["lines"] if line.startswith(f"{writer}.")]
        assert own == [f"{writer}.{number}" for number in range(0, edits, APPENDS)]
    assert len(found["lines"]) == writers + writers * edits // APPENDS
    assert found["versions"] == found["changes"] == list(range(1, writers * edits + 2))
    assert found["is_replayed"]
    assert found["appended"] == sorted(found["appended"]), (
        "an old version shows lines that came later"
    )
