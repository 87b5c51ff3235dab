"""Test REST for comments."""

import pytest
from django.contrib.auth.models import User

from resources_app.models import Comment
from tests.api.clients import ApiClient, error_of
from tests.factories import make_epic, make_task, make_user

COMMENTS = "/api/v1/comments/"


def test_a_comment_is_added_read_edited_and_removed(alice: User, bob: User) -> None:
    task = make_task()
    client = ApiClient(alice)
    created = client.post(COMMENTS, {"item_id": task.ref, "body": "first"})
    assert created.status_code == 201
    path = f"{COMMENTS}{created.json()['id']}/"
    assert created.json()["author"] == "alice"
    edited = client.patch(path, {"body": "second"}, If_Match=created["ETag"])
    assert edited.json()["body"] == "second"
    assert client.patch(path, {"body": "third"}, If_Match=created["ETag"]).status_code == 409
    assert (
        ApiClient(bob).get(f"/api/v1/tasks/{task.ref}/comments/").json()["results"][0]["body"]
        == "second"
    )
    assert client.delete(path).status_code == 204
    assert ApiClient(bob).get(f"{COMMENTS}?item={task.ref}").json()["total"] == 0


def test_only_the_author_and_admins_edit_or_remove_a_comment(alice: User, carol: User) -> None:
    task, other = make_task(), make_user("dave", "contributor")
    made = ApiClient(alice).post(COMMENTS, {"item_id": task.ref, "body": "mine"}).json()
    path = f"{COMMENTS}{made['id']}/"
    assert ApiClient(other).get(path).json()["body"] == "mine"
    for refused in (
        ApiClient(other).patch(path, {"body": "not mine"}),
        ApiClient(other).delete(path),
    ):
        assert (refused.status_code, error_of(refused)["code"]) == (403, "permission_denied")
    assert ApiClient(carol).patch(path, {"body": "corrected"}).json()["body"] == "corrected"
    address = f"/api/v1/resource/?uri={made['uri']}"
    may_write = [
        ApiClient(user).get(address).json()["permissions"]["write"] for user in (other, alice)
    ]
    assert may_write == [False, True]


def test_comments_go_on_epics_too(alice: User) -> None:
    epic = make_epic()
    response = ApiClient(alice).post(f"/api/v1/epics/{epic.ref}/comments/", {"body": "hm"})
    assert (response.status_code, response.json()["item_id"]) == (201, epic.ref)


def test_comments_page_oldest_first(alice: User) -> None:
    task, client = make_task(), ApiClient(alice)
    for number in range(5):
        client.post(COMMENTS, {"item_id": task.ref, "body": f"c{number}"})
    first = client.get(f"{COMMENTS}?item={task.ref}&limit=3").json()
    rest = client.get(f"{COMMENTS}?item={task.ref}&limit=3&cursor={first['next_cursor']}").json()
    assert [row["body"] for row in first["results"] + rest["results"]] == [
        "c0",
        "c1",
        "c2",
        "c3",
        "c4",
    ]
    assert (first["total"], rest["next_cursor"]) == (5, None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"item_id": "TASK-0001", "body": " "}, 400),
        ({"item_id": "TASK-0001"}, 400),
        ({"item_id": "TASK-0404", "body": "x"}, 404),
        ({"item_id": "nothing", "body": "x"}, 404),
        ({"item_id": "TASK-0001", "body": "x", "colour": 1}, 400),
    ],
)
def test_bad_comments_are_refused_and_nothing_is_kept(
    alice: User, body: dict[str, object], status: int
) -> None:
    make_task()
    response = ApiClient(alice).post(COMMENTS, body)
    assert response.status_code == status
    error_of(response)
    assert not Comment.objects.exists()


def test_a_comment_is_as_hidden_as_its_task(alice: User, bob: User) -> None:
    dora = make_user("dora", "contributor", "security")
    task = make_task(groups=["security"])
    created = ApiClient(dora).post(COMMENTS, {"item_id": task.ref, "body": "psst"}).json()
    assert ApiClient(bob).get(f"{COMMENTS}{created['id']}/").status_code == 404
    assert ApiClient(bob).get(COMMENTS).json()["total"] == 0
    assert (
        ApiClient(alice).post(COMMENTS, {"item_id": task.ref, "body": "me too"}).status_code == 404
    )
    assert ApiClient(bob).post(COMMENTS, {"item_id": task.ref, "body": "x"}).status_code == 403
