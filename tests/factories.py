"""Create test objects with plain functions, through the write path."""

from typing import Any

from django.contrib.auth.models import Group, User

from resources_app.identity.roles import Actor
from resources_app.models import Epic, Task
from resources_app.writing import write_path


def make_user(name: str, *roles: str) -> User:
    user, _ = User.objects.get_or_create(username=name)
    user.groups.set(Group.objects.get_or_create(name=role)[0] for role in roles)
    return User.objects.get(pk=user.pk)


def as_actor(user: User, via: str = "rest", **over: Any) -> Actor:
    return Actor(user, via, **over)


def system() -> Actor:
    return as_actor(make_user("carol", "admin"))


def make_task(**over: Any) -> Task:
    item = write_path.create_item(
        over.pop("actor", None) or system(), "task", {"title": "A task"} | over
    )
    assert isinstance(item, Task)
    return item


def make_epic(**over: Any) -> Epic:
    item = write_path.create_item(
        over.pop("actor", None) or system(), "epic", {"title": "An epic"} | over
    )
    assert isinstance(item, Epic)
    return item


def task_uri(task: Task, *rest: object) -> str:
    return "/".join(["mcp://backlog/tasks", task.ref, *map(str, rest)])
