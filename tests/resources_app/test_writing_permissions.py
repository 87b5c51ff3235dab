"""Test write permissions: roles, scopes, protected fields, restricted objects."""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User

from resources_app.editing.operations import ARGUMENTS
from resources_app.errors import BacklogError, NotFound, PermissionDenied
from resources_app.history.documents import uri_of
from resources_app.identity.roles import Actor
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, make_user
from tests.resources_app.acting import again, everything, write

pytestmark = pytest.mark.django_db
SET_TITLE = {"type": "set", "value": "Changed"}


def refused(actor: Actor, uri: str) -> type[BacklogError]:
    before = everything()
    with pytest.raises(BacklogError) as caught:
        write_path.write(actor, uri + "/title", SET_TITLE)
    assert everything() == before
    return type(caught.value)


def test_contributors_and_admins_write(alice: User, carol: User) -> None:
    for user in (alice, carol):
        task = make_task()
        write_path.write(as_actor(user), uri_of(task) + "/title", SET_TITLE)
        assert again(task).title == "Changed"


def test_nobody_else_writes(bob: User, mallory: User) -> None:
    uri = uri_of(make_task())
    for user in (bob, mallory, AnonymousUser()):
        assert refused(Actor(user, "rest"), uri) is PermissionDenied


def test_a_refusal_is_the_same_whether_or_not_the_thing_exists(bob: User, mallory: User) -> None:
    for user in (bob, mallory):
        answers = []
        for uri in (uri_of(make_task()), "mcp://backlog/tasks/TASK-0404"):
            with pytest.raises(BacklogError) as caught:
                write_path.write(as_actor(user), uri + "/title", SET_TITLE)
            answers.append(caught.value.as_json())
        assert answers[0] == answers[1]


def test_a_read_token_of_somebody_who_may_write_does_not_write(alice: User, carol: User) -> None:
    uri = uri_of(make_task())
    for user in (alice, carol):
        assert refused(as_actor(user, scope="read"), uri) is PermissionDenied
        write_path.write(as_actor(user, scope="write"), uri + "/title", SET_TITLE)


def test_somebody_deactivated_does_not_write(alice: User, carol: User) -> None:
    uri = uri_of(make_task())
    for user in (alice, carol):
        user.is_active = False
        user.save()
        assert refused(as_actor(User.objects.get(pk=user.pk)), uri) is PermissionDenied


def test_a_superuser_writes_without_a_role(db: None) -> None:
    task = make_task()
    root = User.objects.create_superuser("root")
    write_path.write(as_actor(root), uri_of(task) + "/title", SET_TITLE)
    assert again(task).title == "Changed"


def test_a_restricted_task_is_not_there_for_writers_outside_its_groups(
    alice: User, carol: User
) -> None:
    insider = make_user("ivan", "contributor", "secret")
    task = make_task(actor=as_actor(insider), groups=["secret"])
    assert refused(as_actor(alice), uri_of(task)) is NotFound
    for user in (insider, carol):
        write_path.write(
            as_actor(user), uri_of(task) + "/title", {"type": "set", "value": f"by {user.username}"}
        )
    with pytest.raises(NotFound):
        write_path.add_comment(as_actor(alice), uri_of(task), "x")
    with pytest.raises(NotFound):
        write_path.archive(as_actor(alice), uri_of(task))
    comment = write_path.add_comment(as_actor(insider), uri_of(task), "ours")
    with pytest.raises(NotFound):
        write(alice, comment, type="append", content="!")


def test_people_limit_things_to_their_own_groups_only(alice: User, carol: User) -> None:
    make_user("ivan", "contributor", "secret")
    task = make_task(actor=as_actor(alice))
    for groups in (["secret"], ["admin"], ["contributor", "secret"], ["no such group"]):
        with pytest.raises(BacklogError) as caught:
            write(alice, task, "groups", type="set", value=groups)
        assert caught.value.details["field"] == "groups"
    write(alice, task, "groups", type="set", value=["contributor"])
    write(carol, task, "groups", type="set", value=["secret"])
    assert again(task).groups == ["secret"]
    with pytest.raises(BacklogError):
        write(carol, task, "groups", type="set", value=["no such group"])


def test_an_admin_with_a_write_token_has_the_groups_of_a_person(carol: User) -> None:
    make_user("ivan", "contributor", "secret")
    with pytest.raises(BacklogError):
        make_task(actor=as_actor(carol, scope="write"), groups=["secret"])


PROTECTED = ["id", "type", "created_at", "updated_at", "archived_at", "version", "etag"]
SOME: dict[str, Any] = {
    "old_str": "a",
    "new_str": "b",
    "line": 0,
    "content": "a",
    "value": "a",
    "field": "title",
    "index": 0,
    "version": 1,
}


@pytest.mark.parametrize("name", PROTECTED)
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_a_protected_field_refuses_every_operation(alice: User, name: str, kind: str) -> None:
    task = make_task()
    operation = {"type": kind, **{argument: SOME[argument] for argument in ARGUMENTS[kind][0]}}
    with pytest.raises(PermissionDenied) as caught:
        write_path.write(as_actor(alice), f"{uri_of(task)}/{name}", operation)
    assert caught.value.details["field"] == name
    assert "title" in caught.value.details["writable"]


@pytest.mark.parametrize("name", PROTECTED)
def test_a_protected_field_cannot_be_set_through_the_whole(alice: User, name: str) -> None:
    task = make_task()
    before = everything()
    for operation in (
        {"type": "set", "field": name, "value": "x"},
        {"type": "merge", "value": {"title": "x", name: "x"}},
        {"type": "delete_field", "field": name},
    ):
        with pytest.raises(PermissionDenied):
            write_path.write(as_actor(alice), uri_of(task), operation)
    assert everything() == before


def test_what_only_the_server_keeps_cannot_be_set_at_all(alice: User) -> None:
    task = make_task()
    for name in (
        "extra",
        "field_versions",
        "delta_weight",
        "snapshot_version",
        "restricted",
        "readers",
        "number",
    ):
        with pytest.raises(BacklogError):
            write(alice, task, type="set", field=name, value={})
        with pytest.raises(NotFound):
            write(alice, task, name, type="set", value={})
    assert again(task).version == 1
