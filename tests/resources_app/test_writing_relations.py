"""Test labels, dependencies, epics, assignees and groups: related rows always agree with the
object.
"""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import IntegrityError, transaction

from resources_app.errors import BacklogError, ValidationFailed
from resources_app.history.documents import uri_of
from resources_app.models import Epic, EpicLabel, Task, TaskDependency, TaskLabel
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, make_user
from tests.resources_app.acting import again, everything, is_replayed, write

pytestmark = pytest.mark.django_db


def rows_follow(task: Task) -> bool:
    row = again(task)
    labels = set(TaskLabel.objects.filter(item=row).values_list("name", flat=True))
    needs = {needed.needs.ref for needed in TaskDependency.objects.filter(task=row)}
    readers = set(row.readers.values_list("name", flat=True))
    return (labels, needs, readers) == (set(row.labels), set(row.depends_on), set(row.groups))


def refusal(user: User, task: Task, *rest: object, **operation: Any) -> dict[str, Any]:
    before = everything()
    with pytest.raises(ValidationFailed) as caught:
        write(user, task, *rest, **operation)
    assert everything() == before
    return caught.value.details


def test_label_rows_follow_the_labels(alice: User) -> None:
    task = make_task(labels=["a", "b"])
    assert rows_follow(task)
    write(alice, task, "labels", type="array_append", value="c")
    write(alice, task, "labels", type="array_remove", value="a")
    write(alice, task, "labels", 0, type="set", value="B")
    assert again(task).labels == ["B", "c"]
    assert rows_follow(task)
    write(alice, task, type="restore", version=1)
    assert again(task).labels == ["a", "b"]
    assert rows_follow(task)
    write(alice, task, type="delete_field", field="labels")
    assert not TaskLabel.objects.exists()


def test_labels_of_epics_have_rows_of_their_own(alice: User) -> None:
    epic, task = make_epic(labels=["a"]), make_task(labels=["a"])
    assert epic.pk == task.pk
    write(alice, epic, "labels", type="set", value=["b"])
    assert list(EpicLabel.objects.values_list("name", flat=True)) == ["b"]
    assert rows_follow(task)


def test_dependency_rows_follow_depends_on(alice: User) -> None:
    one, two, task = make_task(), make_task(), make_task()
    write(alice, task, "depends_on", type="set", value=[one.ref])
    assert rows_follow(task)
    write(alice, task, "depends_on", type="array_append", value=two.ref)
    write(alice, task, "depends_on", type="array_remove", value=one.ref)
    assert again(task).depends_on == [two.ref]
    assert rows_follow(task)
    write(alice, task, type="restore", version=2)
    assert again(task).depends_on == [one.ref]
    assert rows_follow(task)
    assert is_replayed(task)


def test_a_task_may_not_depend_on_itself(alice: User) -> None:
    task = make_task()
    assert refusal(alice, task, "depends_on", type="set", value=[task.ref])["field"] == "depends_on"


def test_a_new_task_may_not_depend_on_the_number_it_will_get(alice: User) -> None:
    before = everything()
    with pytest.raises(ValidationFailed):
        make_task(actor=as_actor(alice), depends_on=["TASK-0001"])
    assert everything() == before


@pytest.mark.parametrize("length", [2, 3, 12])
def test_a_cycle_is_refused_however_long(alice: User, length: int) -> None:
    tasks = [make_task()]
    for _ in range(length - 1):
        tasks.append(make_task(depends_on=[tasks[-1].ref]))
    details = refusal(alice, tasks[0], "depends_on", type="set", value=[tasks[-1].ref])
    assert details["field"] == "depends_on"
    assert details["value"] == [tasks[-1].ref]


def test_a_cycle_behind_several_branches_is_refused(alice: User) -> None:
    top = make_task()
    left, right = make_task(depends_on=[top.ref]), make_task()
    bottom = make_task(depends_on=[right.ref, left.ref])
    free = make_task()
    assert (
        refusal(alice, top, "depends_on", type="set", value=[free.ref, bottom.ref])["field"]
        == "depends_on"
    )


def test_a_diamond_is_no_cycle(alice: User) -> None:
    top = make_task()
    sides = [make_task(depends_on=[top.ref]).ref for _ in range(2)]
    bottom = make_task(depends_on=sides)
    write(alice, bottom, "depends_on", type="array_append", value=top.ref)
    assert rows_follow(bottom)


def test_removing_and_adding_in_one_write_is_judged_by_the_result(alice: User) -> None:
    one, two = make_task(), make_task()
    task = make_task(depends_on=[one.ref])
    write(alice, one, "depends_on", type="set", value=[two.ref])
    write(alice, task, "depends_on", type="set", value=[two.ref])
    write(alice, two, "depends_on", type="set", value=[])
    write(alice, one, "depends_on", type="set", value=[task.ref])
    assert rows_follow(one)


def test_a_missing_and_an_invisible_dependency_are_the_same(alice: User) -> None:
    hidden = make_task(groups=["admin"])
    task = make_task()
    messages = []
    for ref in ("TASK-0404", hidden.ref):
        details = refusal(alice, task, "depends_on", type="set", value=[ref])
        messages.append({key: str(value).replace(ref, "*") for key, value in details.items()})
    assert messages[0] == messages[1]


def test_a_dependency_that_became_invisible_stays_when_others_are_added(
    alice: User, carol: User
) -> None:
    needed, other = make_task(), make_task()
    task = make_task(depends_on=[needed.ref])
    write(carol, needed, "groups", type="set", value=["admin"])
    write(alice, task, "depends_on", type="array_append", value=other.ref)
    assert again(task).depends_on == [needed.ref, other.ref]
    assert rows_follow(task)


def test_an_epic_must_exist_be_visible_and_live(alice: User, carol: User) -> None:
    hidden, archived, task = make_epic(groups=["admin"]), make_epic(), make_task()
    write_path.archive(as_actor(carol), uri_of(archived))
    for ref in ("EPIC-0404", hidden.ref, archived.ref):
        details = refusal(alice, task, "epic_id", type="set", value=ref)
        assert details == {"field": "epic_id", "value": ref}


def test_a_task_keeps_its_archived_epic_while_other_fields_change(alice: User) -> None:
    epic = make_epic()
    task = make_task(epic_id=epic.ref)
    write_path.archive(as_actor(alice), uri_of(epic))
    write(alice, task, type="merge", value={"title": "Still", "epic_id": epic.ref})
    assert again(task).epic == epic


def test_an_assignee_must_be_somebody_active(alice: User, bob: User) -> None:
    task = make_task()
    bob.is_active = False
    bob.save()
    for name in ("nobody", "bob", "ALICE"):
        assert refusal(alice, task, "assignee", type="set", value=name) == {
            "field": "assignee",
            "value": name,
        }
    write(alice, task, "assignee", type="set", value="alice")
    write(alice, task, "assignee", type="set", value=None)
    assert again(task).assignee is None


def test_readers_follow_the_groups(alice: User, carol: User) -> None:
    make_user("ivan", "contributor", "secret")
    task = make_task(actor=as_actor(alice))
    write(carol, task, "groups", type="set", value=["secret", "contributor"])
    assert again(task).restricted
    assert rows_follow(task)
    write(alice, task, "groups", type="set", value=[])
    assert not again(task).restricted
    assert rows_follow(task)


def test_restoring_a_group_that_is_gone_is_refused_by_name(carol: User) -> None:
    make_user("ivan", "contributor", "secret")
    task = make_task(groups=["secret"])
    write(carol, task, "groups", type="set", value=[])
    Group.objects.filter(name="secret").delete()
    assert refusal(carol, task, type="restore", version=1) == {"field": "groups", "value": "secret"}


def test_the_database_itself_refuses_what_must_never_be() -> None:
    task = make_task()
    for columns in ({"title": ""}, {"status": 99}, {"priority": 99}, {"version": 0}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Task.objects.filter(pk=task.pk).update(**columns)
    with pytest.raises(IntegrityError), transaction.atomic():
        TaskDependency.objects.create(task=task, needs=task)
    assert Epic.objects.count() == 0
    assert again(task).version == 1


def test_a_write_refused_after_its_row_was_updated_leaves_nothing(alice: User) -> None:
    task = make_task(labels=["a"])
    before = everything()
    with pytest.raises(BacklogError):
        write(
            alice,
            task,
            type="merge",
            value={"title": "New", "labels": ["b"], "depends_on": ["TASK-0404"]},
        )
    assert everything() == before
