"""Test that users learn nothing of what they may not see: not a title, not a snippet, not a
count.
"""

from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User

from resources_app.models import Task
from resources_app.writing import write_path
from resources_app.writing.stored_files import create_resource
from search_app.search import search_unified
from tests.factories import as_actor, make_epic, make_task, make_user, system
from tests.search_app.finding import found


@pytest.fixture
def insiders(db: None) -> Group:
    return Group.objects.create(name="insiders")


def hidden_things() -> set[str]:
    task = make_task(title="needle task", groups=["insiders"])
    epic = make_epic(title="needle epic", groups=["insiders"])
    create_resource(system(), "resources/needle.md", "needle", groups=["insiders"])
    return {task.ref, epic.ref, "resources/needle.md"}


def again(user: User) -> User:
    """Return the user as the next request sees them."""
    return User.objects.get(pk=user.pk)


def test_without_a_role_nothing_is_found_or_counted(mallory: User) -> None:
    make_task(title="needle")
    for person in (mallory, AnonymousUser(), make_user("gone", "viewer")):
        if person.username == "gone":
            person.is_active = False
        answer = search_unified(person, "needle")
        assert answer["results"] == [] and answer["total"] == 0 and answer["next_cursor"] is None


def test_without_a_role_the_index_is_not_even_asked(
    mallory: User, django_assert_max_num_queries: pytest.FixtureRequest
) -> None:
    make_task(title="needle")
    mallory = again(mallory)
    with django_assert_max_num_queries(2) as asked:  # type: ignore[operator]
        search_unified(mallory, "needle")
    assert not any(
        "search_text" in query["sql"] or "document" in query["sql"]
        for query in asked.captured_queries
    )


def test_what_is_limited_to_a_group_shows_to_its_members_and_admins(
    insiders: Group, bob: User, carol: User
) -> None:
    hidden = hidden_things()
    insider = make_user("ines", "viewer", "insiders")
    assert found(bob, "needle") == [] and search_unified(bob, "needle")["total"] == 0
    assert set(found(insider, "needle")) == set(found(carol, "needle")) == hidden


def test_a_query_of_nothing_but_filters_shows_no_more(
    insiders: Group, bob: User, carol: User
) -> None:
    hidden_things()
    assert search_unified(carol, "open tasks")["total"] > 0
    assert (found(bob, "open tasks"), search_unified(bob, "open tasks")["total"]) == ([], 0)


def test_a_change_of_membership_takes_effect_at_once(insiders: Group, bob: User) -> None:
    hidden = hidden_things()
    bob.groups.add(insiders)
    assert set(found(again(bob), "needle")) == hidden
    bob.groups.remove(insiders)
    assert found(again(bob), "needle") == []


def test_a_deleted_group_hides_its_things_from_all_but_admins(
    insiders: Group, bob: User, carol: User
) -> None:
    hidden = hidden_things()
    bob.groups.add(insiders)
    insiders.delete()
    assert found(again(bob), "needle") == []
    assert set(found(carol, "needle")) == hidden


def test_limiting_and_opening_a_task_takes_effect_with_the_write(
    insiders: Group, bob: User, carol: User
) -> None:
    task = make_task(title="needle")
    uri = f"mcp://backlog/tasks/{task.ref}/groups"
    write_path.write(as_actor(carol), uri, {"type": "set", "value": ["insiders"]})
    assert found(bob, "needle") == []
    write_path.write(as_actor(carol), uri, {"type": "set", "value": []})
    assert found(bob, "needle") == [task.ref]


def test_what_is_found_equals_what_is_visible(insiders: Group, bob: User, carol: User) -> None:
    others = Group.objects.create(name="others")
    for n in range(12):
        make_task(
            title=f"needle {n}",
            groups=[[], ["insiders"], ["others"], ["insiders", "others"]][n % 4],
        )
    for groups in ([], [insiders], [others], [insiders, others]):
        person = make_user("eve", "viewer", *(group.name for group in groups))
        visible = {task.ref for task in Task.objects.visible_to(person)}
        answer = search_unified(person, "needle", limit=100)
        assert {result["id"] for result in answer["results"]} == visible
        assert answer["total"] == len(visible)


def test_what_is_counted_is_what_is_listed_with_every_filter_for_everybody(
    insiders: Group, bob: User, carol: User
) -> None:
    statuses = ["open", "in_progress", "done"]
    for n in range(18):
        task = make_task(
            title=f"needle {n}",
            labels=["odd"] if n % 2 else [],
            groups=["insiders"] if n % 3 == 0 else [],
        )
        address = f"mcp://backlog/tasks/{task.ref}"
        write_path.write(
            as_actor(carol), f"{address}/status", {"type": "set", "value": statuses[n % 4 % 3]}
        )
        if n % 5 == 0:
            write_path.archive(as_actor(carol), address)
    make_epic(title="needle", groups=["insiders"])
    create_resource(system(), "resources/needle.md", "needle")
    choices: list[dict[str, Any]] = [
        {},
        {"status": "open"},
        {"status": ["open", "done"]},
        {"label": "odd"},
    ]
    choices += [
        {"types": "task"},
        {"types": ["epic", "resource"]},
        {"types": "task", "status": "open", "label": "odd"},
    ]
    for person in (bob, carol, make_user("ines", "viewer", "insiders")):
        refs = {task.ref for task in Task.objects.visible_to(person).live()}
        for chosen in choices:
            answer = search_unified(person, "needle", limit=100, **chosen)
            assert answer["total"] == len(answer["results"]) > 0, (person, chosen)
            tasks = {result["id"] for result in answer["results"] if result["type"] == "task"}
            assert tasks <= refs, (person, chosen)
        assert set(found(person, "needle", limit=100, types="task")) == refs


def test_a_page_is_full_although_most_matches_are_hidden(insiders: Group, bob: User) -> None:
    seen = [make_task(title="needle").ref for _ in range(3)]
    for _ in range(20):
        make_task(title="needle", groups=["insiders"])
    answer = search_unified(bob, "needle", limit=3)
    assert [result["id"] for result in answer["results"]] == seen
    assert answer["total"] == 3 and answer["next_cursor"] is None


def test_a_word_of_hidden_things_is_as_unknown_as_any(
    insiders: Group, bob: User, carol: User
) -> None:
    make_task(title="The acquisition", groups=["insiders"])
    slip = make_task(title="The acquisitiom")
    assert found(bob, "acquisition") == [slip.ref]
    assert slip.ref not in found(carol, "acquisition")


def test_an_explanation_counts_nothing_that_is_hidden(insiders: Group, bob: User) -> None:
    make_task(title="needle")
    before = search_unified(bob, "needle", explain=True)
    for _ in range(5):
        make_task(title="needle", groups=["insiders"])
    after = search_unified(bob, "needle", explain=True)
    assert after == before | {"index_version": after["index_version"]}
