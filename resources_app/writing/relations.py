"""Maintain rows that mirror list columns, so that filters use an index and the database enforces
integrity.
"""

from typing import Any

from django.contrib.auth.models import Group
from django.db.models import F

from resources_app.errors import ValidationFailed
from resources_app.files import folders
from resources_app.history.documents import visible_tasks
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.models import (
    Epic,
    EpicLabel,
    Resource,
    Sequence,
    Task,
    TaskDependency,
    TaskLabel,
)
from resources_app.models.base import Versioned

_LABELS: dict[type[Versioned], Any] = {Task: TaskLabel, Epic: EpicLabel}


def follow(actor: Actor, thing: Versioned, changed: Document) -> None:
    """Update the related rows of `thing` to match the fields that changed."""
    if "labels" in changed:
        _follow_labels(thing, changed["labels"])
    if "groups" in changed and isinstance(thing, Task | Epic | Resource):
        thing.readers.set(Group.objects.filter(name__in=changed["groups"]))
    if "depends_on" in changed and isinstance(thing, Task):
        _follow_dependencies(actor, thing, changed["depends_on"])
    if "path" in changed and isinstance(thing, Resource):
        folders.settle(thing)


def _follow_labels(thing: Versioned, names: list[str]) -> None:
    model = _LABELS[type(thing)]
    rows = model.objects.filter(item_id=thing.pk)
    present = set(rows.values_list("name", flat=True))
    rows.filter(name__in=present - set(names)).delete()
    model.objects.bulk_create(
        [model(item_id=thing.pk, name=name) for name in names if name not in present]
    )


def _follow_dependencies(actor: Actor, task: Task, refs: list[str]) -> None:
    rows = TaskDependency.objects.filter(task=task)
    present = {Task.make_ref(number): number for number in rows.values_list("needs_id", flat=True)}
    rows.filter(
        needs_id__in=[number for ref, number in present.items() if ref not in refs]
    ).delete()
    numbers = _existing(actor, [ref for ref in refs if ref not in present])
    if numbers:
        _refuse_cycle(task, numbers)
    TaskDependency.objects.bulk_create(
        [TaskDependency(task=task, needs_id=number) for number in numbers]
    )


def _existing(actor: Actor, refs: list[str]) -> list[int]:
    numbers = visible_tasks(actor, refs)
    if missing := [ref for ref in refs if ref not in numbers]:
        raise ValidationFailed(
            f"There is no task {missing[0]}.", field="depends_on", value=missing[0]
        )
    return list(numbers.values())


def _refuse_cycle(task: Task, added: list[int]) -> None:
    """Reject a dependency cycle by walking the dependencies of the added tasks, one query per
    level.

    Edits are serialized because two concurrent edits could close a cycle together.
    """
    Sequence.objects.filter(prefix=Task.PREFIX).update(last=F("last"))
    if task.pk not in added and not TaskDependency.objects.filter(needs=task).exists():
        return  # a cycle would have to return through a task that needs this one
    level, seen = set(added), set(added)
    while level:
        if task.pk in level:
            raise ValidationFailed(
                f"{task.ref} would depend on itself.",
                field="depends_on",
                value=[Task.make_ref(n) for n in added],
            )
        needed = TaskDependency.objects.filter(task_id__in=level).values_list("needs_id", flat=True)
        level = set(needed) - seen
        seen |= level
