"""Test that every change records its author: user, client, agent, scope, address and request."""

from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resources_app.identity import credentials, tokens
from resources_app.models import ApiToken, Change
from resources_app.reading.by_address import read
from resources_app.writing import write_path
from tests.accounts.flow import let_in
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_task, task_uri
from tests.resources_app.admin_client import enter, opened, url
from tests.viewer.browsing import signed_in

pytestmark = pytest.mark.django_db


def test_a_write_by_token_names_the_token(alice: User) -> None:
    ApiClient(alice).post("/api/v1/tasks/", {"title": "T"})
    change, token = Change.objects.latest("pk"), ApiToken.objects.get(user=alice)
    assert (change.author, change.via, change.agent) == (alice, "rest", token.name)
    assert change.client == f"token:{token.pk} {token.name}"
    assert (change.scope, change.address, len(change.request_id)) == ("write", "127.0.0.1", 36)


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_history_activity_and_feed_name_the_agent_and_the_token(alice: User) -> None:
    task = make_task(title="T")
    _, secret = tokens.create(alice, "alice's laptop", "write")
    credential = credentials.recognise(secret)
    assert credential
    write_path.write(
        credential.actor("mcp", agent="claude-code"),
        task_uri(task, "title"),
        {"type": "set", "value": "U"},
    )
    for uri in (f"{task_uri(task)}/versions", "mcp://backlog/changes"):
        rows = read(as_actor(alice), uri).contents["results"]
        (row,) = [row for row in rows if row["agent"] == "claude-code"]
        assert (row["author"], row["agent"], row["token"]) == (
            "alice",
            "claude-code",
            "alice's laptop",
        ), uri
    browser = signed_in(alice)
    for page in (f"/t/{task.ref}/", "/activity/"):
        shown = unescape(browser.get(page).content.decode())
        assert "claude-code" in shown and "with the token alice's laptop" in shown, page


def test_what_was_written_in_a_browser_names_no_token(alice: User) -> None:
    task = make_task(title="T")
    signed_in(alice).post(f"/t/{task.ref}/set/", {"field": "title", "value": "By hand"})
    rows = read(as_actor(alice), f"{task_uri(task)}/versions").contents["results"]
    assert [row["token"] for row in rows] == [None, None]


def test_a_write_by_an_oauth_client_names_the_client(alice: User) -> None:
    _, granted = let_in(alice)
    headers = {"Authorization": f"Bearer {granted['access_token']}"}
    Client().post(
        "/api/v1/tasks/", {"title": "T"}, content_type="application/json", headers=headers
    )
    change = Change.objects.latest("pk")
    assert change.client.startswith("oauth:") and change.client.endswith(" Agent")
    assert (change.author, change.scope) == (alice, "write")


def test_a_write_in_a_browser_names_the_session(alice: User) -> None:
    browser = Client()
    browser.force_login(alice)
    browser.post("/api/v1/tasks/", {"title": "T"}, content_type="application/json")
    change = Change.objects.latest("pk")
    assert (change.client, change.address, change.agent) == ("session", "127.0.0.1", "")
    assert (change.via, change.scope, len(change.request_id)) == ("rest", "write", 36)


def test_writes_in_the_viewer_and_the_admin_are_told_apart(alice: User) -> None:
    task = make_task(title="T")
    signed_in(alice).post(f"/t/{task.ref}/set/", {"field": "title", "value": "By hand"})
    by_page = Change.objects.latest("pk")
    admin = enter()
    admin.post(
        url("task_change", task.pk),
        opened(admin, "task_change", task.pk) | {"title": "By an admin"},
    )
    by_admin = Change.objects.latest("pk")
    assert (by_page.author, by_page.via, by_page.scope) == (alice, "web", "write")
    assert (by_admin.author.username, by_admin.via, by_admin.scope) == ("carol", "admin", "admin")
    for change in (by_page, by_admin):
        assert (change.client, change.agent, change.address) == ("session", "", "127.0.0.1")
        assert len(change.request_id) == 36


def test_nobody_writes_the_trail_of_their_own_write(alice: User) -> None:
    forged = {
        "X_Forwarded_For": "9.9.9.9",
        "X_Real_IP": "9.9.9.9",
        "Remote_User": "carol",
        "X_Agent": "carol",
    }
    for body in (
        {"title": "T"},
        {"title": "T", "author": "carol", "via": "admin", "client": "c", "agent": "a"},
    ):
        ApiClient(alice).post("/api/v1/tasks/", body, **forged)
        change = Change.objects.latest("pk")
        assert (change.author, change.via, change.address) == (alice, "rest", "127.0.0.1")
        assert change.client.startswith("token:") and change.agent.startswith("agent ")


def test_the_audit_trail_is_shown_and_searched_in_the_admin(alice: User) -> None:
    ApiClient(alice).post("/api/v1/tasks/", {"title": "By a token"})
    make_task(title="By a command")
    client, change = enter(), Change.objects.get(agent__startswith="agent")
    page = client.get(url("change_change", change.pk)).content.decode()
    assert change.client in page and "127.0.0.1" in page and change.request_id in page
    listed = (
        client.get(url("change_changelist"), {"client__icontains": "token:"})
        .context["cl"]
        .result_list
    )
    assert [row.pk for row in listed] == [change.pk]


def test_oauth_access_is_shown_and_ended_in_the_admin(alice: User) -> None:
    from oauth2_provider.models import AccessToken, Application

    from tests.accounts.flow import reads, refresh

    client_id, granted = let_in(alice)
    browser = enter()
    clients, access = "/admin/oauth2_provider/application/", "/admin/oauth2_provider/accesstoken/"
    assert client_id in browser.get(clients).content.decode()
    token = AccessToken.objects.get(user=alice)
    assert "read write" in browser.get(access).content.decode()
    assert browser.get(f"{access}{token.pk}/change/").status_code == 200
    browser.post(access, {"action": "revoke", "_selected_action": [token.pk]})
    assert reads(granted["access_token"]) == 401
    assert refresh(client_id, granted["refresh_token"]).status_code == 400
    browser.post(clients, {"action": "forget", "_selected_action": [Application.objects.get().pk]})
    assert not Application.objects.exists()
