"""Test one effect per key: a repeat gets the stored answer, another request under the same key is
rejected.
"""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User

from resources_app.errors import BacklogError, OperationFailed, PermissionDenied, ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.models import IdempotencyKey, Task
from resources_app.writing.batches import MAX_KEY, once, write_batch
from tests.factories import as_actor, make_task, task_uri
from tests.resources_app.acting import again, everything

pytestmark = pytest.mark.django_db


def append(task: Task, content: str) -> list[dict[str, Any]]:
    return [
        {"uri": task_uri(task, "description"), "operation": {"type": "append", "content": content}}
    ]


def test_the_same_request_again_gets_the_same_answer_and_acts_once(alice: User) -> None:
    task = make_task()
    first = write_batch(as_actor(alice), append(task, "a"), idempotency_key="k")
    before = everything()
    assert write_batch(as_actor(alice), append(task, "a"), idempotency_key="k") == first
    assert everything() == before
    assert again(task).description == "a"


@pytest.mark.parametrize("other", [{"operations": "b"}, {"atomic": False}, {"dry_run": True}])
def test_another_request_under_the_same_key_is_refused(alice: User, other: dict[str, Any]) -> None:
    task = make_task()
    write_batch(as_actor(alice), append(task, "a"), idempotency_key="k")
    before = everything()
    content = other.pop("operations", "a")
    with pytest.raises(ValidationFailed) as caught:
        write_batch(as_actor(alice), append(task, content), idempotency_key="k", **other)
    assert caught.value.details == {"field": "idempotency_key", "value": "k"}
    assert everything() == before


def test_the_order_of_keys_in_a_request_does_not_make_it_another(alice: User) -> None:
    task = make_task()
    first = write_batch(as_actor(alice), append(task, "a"), idempotency_key="k")
    turned = [dict(reversed(list(entry.items()))) for entry in append(task, "a")]
    assert write_batch(as_actor(alice), turned, idempotency_key="k") == first


def test_keys_belong_to_their_users(alice: User, carol: User) -> None:
    task = make_task()
    for user in (alice, carol):
        write_batch(as_actor(user), append(task, "a"), idempotency_key="k")
    assert again(task).description == "aa"


def test_without_a_key_a_repeat_acts_again(alice: User) -> None:
    task = make_task()
    for _ in range(2):
        write_batch(as_actor(alice), append(task, "a"))
    assert again(task).description == "aa"
    assert not IdempotencyKey.objects.exists()


def test_a_failed_request_leaves_its_key_free(alice: User) -> None:
    task = make_task()
    bad = [{"uri": task_uri(task, "description"), "operation": {"type": "delete", "content": "a"}}]
    with pytest.raises(OperationFailed):
        write_batch(as_actor(alice), bad, idempotency_key="k")
    assert not IdempotencyKey.objects.exists()
    write_batch(as_actor(alice), append(task, "a"), idempotency_key="k")
    assert again(task).description == "a"


def test_a_rehearsal_is_kept_as_one(alice: User) -> None:
    task = make_task()
    first = write_batch(as_actor(alice), append(task, "a"), idempotency_key="k", dry_run=True)
    assert (
        write_batch(as_actor(alice), append(task, "a"), idempotency_key="k", dry_run=True) == first
    )
    assert again(task).version == 1


@pytest.mark.parametrize("poison", ["\x00", "\ud800", "\\u0000", "👍\u2028"])
def test_an_answer_that_quotes_anything_can_be_kept(alice: User, poison: str) -> None:
    task = make_task()
    operations = [
        *append(task, "a"),
        {"uri": f"mcp://backlog/{poison}", "operation": {"type": "set", "value": poison}},
        {"uri": task_uri(task, "description"), "operation": {"type": "delete", "content": poison}},
    ]
    first = write_batch(as_actor(alice), operations, atomic=False, idempotency_key="k")
    assert write_batch(as_actor(alice), operations, atomic=False, idempotency_key="k") == first
    assert (first["failed"], again(task).description) == (2, "a")


@pytest.mark.parametrize("key", ["x" * (MAX_KEY + 1), 3, ["k"], "a\x00b", "\ud800"])
def test_a_key_is_a_short_text(alice: User, key: Any) -> None:
    task = make_task()
    with pytest.raises(ValidationFailed) as caught:
        write_batch(as_actor(alice), append(task, "a"), idempotency_key=key)
    assert caught.value.details["field"] == "idempotency_key"
    assert again(task).version == 1


def test_who_may_not_write_keeps_no_key(bob: User, mallory: User) -> None:
    task = make_task()
    for user in (bob, mallory, AnonymousUser()):
        with pytest.raises(PermissionDenied):
            write_batch(Actor(user, "rest"), append(task, "a"), idempotency_key="k")
    assert not IdempotencyKey.objects.exists()


def test_whatever_runs_once_is_undone_with_its_key_when_it_fails(alice: User) -> None:
    def create_and_fail() -> dict[str, Any]:
        make_task()
        raise OperationFailed("no")

    with pytest.raises(BacklogError):
        once(as_actor(alice), "k", {}, create_and_fail)
    assert not Task.objects.exists()
    assert not IdempotencyKey.objects.exists()
