"""Test visibility: decided by `visible_to` alone, on every model that holds backlog content."""

from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db.models import Model

from resources_app.history.documents import uri_of
from resources_app.identity.roles import Person, is_admin, may_read, may_write
from resources_app.models import Change, Comment, Epic, Folder, Resource, Task
from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task, make_user, system
from tests.resources_app.acting import again

pytestmark = pytest.mark.django_db

# Never listed to any user, with the reason for each.
INTERNAL = {
    "ApiToken": "shown to its own user by tokens.py",
    "Document": "the search index, joined with the things that the user sees",
    "EpicLabel": "a filter on epics",
    "IBEntitlement": "what IBFolder and IBResource ask who sees them",
    "IBLink": "shown to its own user, and to admins without its session",
    "IBQuarantine": "shown to admins",
    "IBSyncRun": "numbers alone, shown by readers/system.py",
    "IdempotencyKey": "an answer, given back to the user it was given to",
    "IndexState": "which slot of the index is live",
    "Job": "shown to admins and to who asked for it by readers/system.py",
    "Passage": "vectors of the search index, compared only with documents that the user sees",
    "Revision": "read through the thing it is a version of",
    "Sequence": "a counter",
    "ServiceAccount": "shown to admins",
    "Tally": "a sum of what everybody sees; tallies.py asks visible_to for the rest",
    "TaskDependency": "a filter on tasks",
    "TaskLabel": "a filter on tasks",
}


def our_models() -> list[type[Model]]:
    labels = ("resources_app", "search_app", "backlog_site")
    configs = [config for config in apps.get_app_configs() if config.label in labels]
    return [model for config in configs for model in config.get_models()]


def shown_models() -> list[type[Any]]:
    return [model for model in our_models() if model.__name__ not in INTERNAL]


@pytest.fixture
def inactive(db: None) -> User:
    user = make_user("irene", "admin", "contributor")
    user.is_active = False
    user.save()
    return User.objects.get(pk=user.pk)


@pytest.fixture
def filled(carol: User) -> None:
    """Create one of every visible kind."""
    make_user("ivan", "contributor", "secret")
    for groups in ([], ["secret"]):
        epic, task = make_epic(groups=groups), make_task(groups=groups)
        for item in (epic, task):
            write_path.add_comment(system(), uri_of(item), "said")
        folder = "open" if not groups else "closed"
        stored_files.create_resource(system(), f"resources/{folder}/a.md", "text", groups=groups)


def seen(model: type[Any], user: Person) -> int:
    return int(model.objects.visible_to(user).count())


def test_every_model_says_who_sees_it_or_is_internal() -> None:
    names = {model.__name__ for model in our_models()}
    assert names >= set(INTERNAL)
    lacking = [
        model.__name__
        for model in shown_models()
        if not hasattr(model._default_manager, "visible_to")
    ]
    assert lacking == [], (
        "give the queryset visible_to(user), or list the model as internal with a reason"
    )


@pytest.mark.usefixtures("filled")
def test_admins_see_everything_and_outsiders_nothing_of_every_model(
    carol: User, mallory: User, inactive: User
) -> None:
    for model in (Task, Epic, Comment, Resource, Folder, Change):
        assert seen(model, carol) == model._base_manager.count() > 0
    for model in shown_models():
        for user in (mallory, AnonymousUser(), inactive):
            assert seen(model, user) == 0


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("name", ["alice", "bob"])
def test_the_team_sees_what_is_not_restricted(name: str, alice: User, bob: User) -> None:
    user = {"alice": alice, "bob": bob}[name]
    assert {model.__name__: seen(model, user) for model in (Task, Epic, Comment, Resource)} == {
        "Task": 1,
        "Epic": 1,
        "Comment": 2,
        "Resource": 1,
    }
    paths = set(Folder.objects.visible_to(user).values_list("path", flat=True))
    assert "resources/open" in paths
    assert "resources/closed" not in paths
    kinds = Change.objects.visible_to(user).values_list("kind", flat=True)
    assert sorted(kinds) == ["comment", "comment", "epic", "resource", "task"]


@pytest.mark.usefixtures("filled")
def test_members_of_a_group_see_what_is_limited_to_it() -> None:
    ivan = User.objects.get(username="ivan")
    for model in (Task, Epic, Comment, Resource, Folder, Change):
        assert seen(model, ivan) == model._base_manager.count()


def test_a_group_without_a_role_opens_nothing() -> None:
    make_user("ivan", "contributor", "secret")
    make_task(groups=["secret"])
    assert seen(Task, make_user("oscar", "secret")) == 0


@pytest.mark.usefixtures("filled")
def test_what_was_limited_to_a_deleted_group_is_for_admins_only(alice: User, carol: User) -> None:
    Group.objects.filter(name="secret").delete()
    ivan = User.objects.get(username="ivan")
    for user in (alice, ivan):
        assert (seen(Task, user), seen(Epic, user), seen(Resource, user), seen(Comment, user)) == (
            1,
            1,
            1,
            2,
        )
    assert seen(Task, carol) == 2
    Group.objects.create(name="secret").user_set.add(ivan)
    assert seen(Task, User.objects.get(pk=ivan.pk)) == 1, (
        "a new group of the same name is another group"
    )


def test_leaving_a_group_takes_effect_with_the_next_request() -> None:
    ivan = make_user("ivan", "contributor", "secret")
    make_task(groups=["secret"])
    assert seen(Task, ivan) == 1
    assert seen(Task, make_user("ivan", "contributor")) == 0


def test_one_of_several_groups_is_enough() -> None:
    make_user("ivan", "contributor", "secret")
    olga = make_user("olga", "viewer", "board")
    task = make_task(groups=["secret", "board"])
    assert list(Task.objects.visible_to(olga)) == [task]


def test_the_roles_are_groups_that_things_can_be_limited_to(alice: User, bob: User) -> None:
    make_task(actor=as_actor(alice), groups=["contributor"])
    assert (seen(Task, alice), seen(Task, bob)) == (1, 0)


@pytest.mark.usefixtures("filled")
def test_visibility_composes_with_other_filters(bob: User, carol: User) -> None:
    for task in Task.objects.all():
        write_path.archive(as_actor(carol), uri_of(task))
    assert Task.objects.visible_to(bob).live().count() == 0
    assert Task.objects.archived().visible_to(bob).count() == 1
    assert Task.objects.visible_to(bob).ready().count() == 1
    assert Task.objects.filter(pk__in=[1, 2]).visible_to(bob).count() == 1


def test_a_task_in_a_hidden_epic_is_seen_unless_hidden_itself(bob: User) -> None:
    hidden = make_epic(groups=["admin"])
    task = make_task(epic_id=hidden.ref)
    assert list(Task.objects.visible_to(bob)) == [task]
    assert not Epic.objects.visible_to(bob).exists()


def test_lifting_a_restriction_shows_the_thing_with_all_that_belongs_to_it(
    bob: User, carol: User
) -> None:
    task = make_task(groups=["admin"])
    write_path.add_comment(system(), uri_of(task), "said")
    assert (seen(Task, bob), seen(Comment, bob), seen(Change, bob)) == (0, 0, 0)
    write_path.write(as_actor(carol), uri_of(task) + "/groups", {"type": "set", "value": []})
    assert not again(task).restricted
    assert (seen(Task, bob), seen(Comment, bob), seen(Change, bob)) == (1, 1, 3)


def test_roles_say_who_reads_writes_and_administers(
    alice: User, bob: User, carol: User, mallory: User, inactive: User
) -> None:
    people: list[Person] = [
        alice,
        bob,
        carol,
        mallory,
        inactive,
        AnonymousUser(),
        User.objects.create_superuser("root"),
    ]
    abilities = [(may_read(user), may_write(user), is_admin(user)) for user in people]
    yes_no = {
        (True, True, False): "writes",
        (True, False, False): "reads",
        (True, True, True): "admin",
    }
    assert [
        yes_no.get(ability, "nothing" if not any(ability) else "odd") for ability in abilities
    ] == [
        "writes",
        "reads",
        "admin",
        "nothing",
        "nothing",
        "nothing",
        "admin",
    ]
