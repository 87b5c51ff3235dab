"""Test eight processes that write every field of one task at once: only stale ETags fail, and
nothing is lost.
"""

from functools import partial
from typing import Any

import pytest

from resources_app.addresses.targets import Target, visible_thing
from resources_app.errors import Conflict
from resources_app.fields.declarations import FIELDS
from resources_app.history import revisions as history
from resources_app.history.documents import document_of
from resources_app.models import Change, Revision, Task
from resources_app.reading.by_address import read
from resources_app.writing import write_path
from tests.concurrency.crew import line_up, send, together
from tests.factories import as_actor, make_epic, make_task, make_user, system, task_uri

WRITERS, ROUNDS = 8, 6
GROUP = "red"
SCALARS: dict[str, list[Any]] = {
    "status": ["open", "in_progress", "blocked", "done", "cancelled"],
    "priority": ["none", "low", "medium", "high", "urgent"],
    "assignee": [None, "writer0", "writer1", "writer2"],
    "due_date": [None, "2026-01-31", "2027-02-28"],
    "epic_id": [None, "EPIC-0001", "EPIC-0002"],
    "groups": [[], [GROUP]],
    "estimate": [None, 0, 2.5],
    "depends_on": [[], ["TASK-0002"], ["TASK-0002", "TASK-0003"]],
}
TEXTS, LISTS = ("title", "description"), ("evidence", "blocked_reason")


def operation_on(field: str, writer: int, turn: int) -> dict[str, Any]:
    mark = f"{writer}.{turn}"
    if field in SCALARS:
        return {"type": "set", "value": SCALARS[field][(writer + turn) % len(SCALARS[field])]}
    if field in LISTS:
        return {"type": "array_append", "value": mark}
    if field == "labels":
        return {"type": "set", "value": [f"label {writer}", f"label {turn}"]}
    if field == "references":
        return {
            "type": "array_append",
            "value": {"url": f"https://example.com/{mark}", "title": mark},
        }
    return (
        {"type": "set", "value": mark}
        if field == "title"
        else {"type": "append", "content": f"{mark}\n"}
    )


def write_every_field(writer: int, fields: list[str]) -> dict[str, Any]:
    """Write every field. Every second write sends the ETag read just before.

    Any error but its conflict fails the crew. Writers are admins: the right of anyone else to
    restrict the task would depend on the assignee of the moment.
    """
    actor = as_actor(make_user(f"writer{writer}", "admin", GROUP))
    task = Task.objects.get(pk=1)
    done: dict[str, list[str]] = {field: [] for field in fields}
    versions, conflicts = [], 0
    line_up()
    for turn in range(ROUNDS):
        for place in range(len(fields)):
            field = fields[(place + writer * 2) % len(fields)]
            uri = task_uri(task, field)
            etag = read(actor, uri).etag if (place + turn) % 2 else None
            try:
                answer = write_path.write(actor, uri, operation_on(field, writer, turn), etag)
            except Conflict:
                assert etag, "without an ETag a write applies to what is there"
                conflicts += 1
            else:
                versions.append(answer["version"])
                done[field].append(f"{writer}.{turn}")
    return {"versions": versions, "done": done, "conflicts": conflicts}


def write_together() -> dict[str, Any]:
    system()
    for writer in range(WRITERS):
        make_user(f"writer{writer}", "admin", GROUP)
    make_epic(), make_epic()
    make_task(), make_task(), make_task()
    fields = sorted(field.name for field in FIELDS["task"].values() if field.writable)
    outcomes = together(partial(write_every_field, fields=fields), range(WRITERS))
    task = visible_thing(system().user, Target("task", ("pk", 1)))
    document = document_of(task)
    revisions = Revision.objects.filter(kind="task", object_id=1).order_by("version")
    changes = Change.objects.filter(kind="task", object_id=1).order_by("version")
    return {
        "fields": fields,
        "outcomes": outcomes,
        "document": document,
        "version": task.version,
        "field_versions": task.field_versions,
        "revisions": list(revisions.values_list("version", flat=True)),
        "changes": list(changes.values_list("version", "fields")),
        "is_replayed": history.document_at("task", 1, task.version) == document,
    }


@pytest.fixture
def found(variables: dict[str, str]) -> dict[str, Any]:
    answer: dict[str, Any] = send(variables, write_together)
    return answer


def test_every_field_of_one_task_is_written_by_eight_processes_at_once(
    found: dict[str, Any],
) -> None:
    assert set(found["fields"]) == {*SCALARS, *TEXTS, *LISTS, "labels", "references"}
    acknowledged = {version for outcome in found["outcomes"] for version in outcome["versions"]} - {
        1
    }
    assert acknowledged == set(range(2, found["version"] + 1)), (
        "each version belongs to an acknowledged write"
    )
    assert (
        found["revisions"]
        == [version for version, _ in found["changes"]]
        == list(range(1, found["version"] + 1))
    )
    assert found["is_replayed"]
    last_change = {name: version for version, fields in found["changes"][1:] for name in fields}
    assert {name: found["field_versions"].get(name) for name in last_change} == last_change
    document = found["document"]
    for field, entries in (
        ("description", document["description"].split()),
        ("evidence", document["evidence"]),
        ("blocked_reason", document["blocked_reason"]),
        ("references", [entry["title"] for entry in document["references"]]),
    ):
        done = [mark for outcome in found["outcomes"] for mark in outcome["done"][field]]
        assert sorted(entries) == sorted(done), f"{field} has every acknowledged entry once"
