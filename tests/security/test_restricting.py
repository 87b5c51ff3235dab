"""Test who may restrict an object to groups: its creator, its assignee, a member of its epic's
groups, an admin.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from resources_app.errors import PermissionDenied
from resources_app.models import Change, Task
from resources_app.writing import stored_files, undo, write_path
from resources_app.writing.batches import write_batch
from resources_app.writing.write_path import write
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_epic, make_task, make_user

pytestmark = pytest.mark.django_db

LIMIT = {"type": "set", "field": "groups", "value": ["otherg"]}


@pytest.fixture
def evan(db: None) -> User:
    """Return a writer in a group without alice."""
    return make_user("evan", "contributor", "otherg")


@pytest.mark.parametrize("kind", ["task", "epic"])
def test_a_contributor_cannot_hide_what_is_not_theirs(alice: User, evan: User, kind: str) -> None:
    item = write_path.create_item(as_actor(alice), kind, {"title": "Ours"})
    client, path = ApiClient(evan), f"/api/v1/{kind}s/{item.ref}/"
    refused = client.patch(path, {"groups": ["otherg"], "title": "Mine"})
    assert refused.status_code == 403 and error_of(refused)["details"]["field"] == "groups"
    assert ApiClient(alice).get(path).json()["title"] == "Ours"
    with acting_as(as_actor(evan, via="mcp")), pytest.raises(PermissionDenied):
        BacklogTools().write_resource(uri=f"mcp://backlog/{kind}s/{item.ref}", operation=LIMIT)
    assert client.patch(path, {"title": "Fine", "groups": []}).status_code == 200, (
        "what stays as it is, is no change"
    )


def test_a_contributor_cannot_hide_a_file_of_others(alice: User, evan: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/ours.md", "# Ours\n")
    refused = ApiClient(evan).patch("/api/v1/resources/ours.md", {"groups": ["otherg"]})
    assert refused.status_code == 403
    stored_files.create_resource(as_actor(evan), "resources/mine.md", "# Mine\n")
    assert (
        ApiClient(evan).patch("/api/v1/resources/mine.md", {"groups": ["otherg"]}).status_code
        == 200
    )


@pytest.mark.parametrize("why", ["creator", "assignee", "epic", "admin"])
def test_these_may(alice: User, evan: User, carol: User, why: str) -> None:
    epic = make_epic(groups=["otherg"], actor=as_actor(evan)).ref
    values = {"assignee": {"assignee": "evan"}, "epic": {"epic_id": epic}}.get(why, {})
    author = as_actor(evan) if why in {"creator", "epic"} else as_actor(alice)
    task = make_task(actor=author, **values)
    user = {"admin": carol, "epic": make_user("erin", "contributor", "otherg")}.get(why, evan)
    assert (
        ApiClient(user).patch(f"/api/v1/tasks/{task.ref}/", {"groups": ["otherg"]}).status_code
        == 200
    )
    change = Change.objects.filter(ref=task.ref).order_by("-version").first()
    assert change and (change.fields, change.author) == (["groups"], user), "it is in the history"
    assert ApiClient(user).patch(f"/api/v1/tasks/{task.ref}/", {"groups": []}).status_code == 200, (
        "and reversible"
    )


def test_a_member_of_the_group_cannot_open_what_is_not_theirs(evan: User) -> None:
    task = make_task(actor=as_actor(evan), groups=["otherg"])
    erin = make_user("erin", "contributor", "otherg")
    assert ApiClient(erin).patch(f"/api/v1/tasks/{task.ref}/", {"groups": []}).status_code == 403


def test_restoring_and_undoing_are_held_to_the_same_rule(evan: User) -> None:
    erin = as_actor(make_user("erin", "contributor", "otherg"))
    task = make_task(actor=as_actor(evan))
    uri = f"mcp://backlog/tasks/{task.ref}"
    batch = write_batch(as_actor(evan), [{"uri": uri, "operation": LIMIT}])["batch"]
    with pytest.raises(PermissionDenied):
        write(erin, uri, {"type": "restore", "version": 1})
    with pytest.raises(PermissionDenied):
        undo.undo_batch(erin, batch)
    undo.undo_batch(as_actor(evan), batch)
    assert Task.objects.get(pk=task.pk).groups == []


def test_an_admin_sees_who_did_it_and_takes_it_back(alice: User, evan: User, carol: User) -> None:
    task = make_task(actor=as_actor(alice), assignee="evan")
    write(as_actor(evan), f"mcp://backlog/tasks/{task.ref}", LIMIT)
    path = f"/api/v1/tasks/{task.ref}/"
    assert ApiClient(alice).get(path).status_code == 404
    versions: Any = (
        ApiClient(carol)
        .get(f"/api/v1/versions/?uri=mcp://backlog/tasks/{task.ref}")
        .json()["results"]
    )
    assert (versions[0]["author"], versions[0]["fields"]) == ("evan", ["groups"])
    assert ApiClient(carol).patch(path, {"groups": []}).status_code == 200
    assert ApiClient(alice).get(path).status_code == 200
