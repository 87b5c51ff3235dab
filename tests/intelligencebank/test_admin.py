"""Test the admin pages: connections with write-only secrets, runs, and what an admin may see."""

from django.contrib.auth.models import User

from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import IBConnection, IBLink, IBSyncRun, Job
from tests.intelligencebank.mirrors import all_ids, link, sync
from tests.intelligencebank.worlds import BOB, SERVICE, SERVICE_PASSWORD
from tests.resources_app.admin_client import enter, errors_of, make_admin, opened, url

PAGES = (
    "ibconnection",
    "ibsyncrun",
    "ibfolder",
    "ibresource",
    "iblink",
    "ibentitlement",
    "ibquarantine",
)


def test_a_connection_is_made_and_its_secrets_never_shown(
    fake: FakeIB, tenant: Tenant, carol: User
) -> None:
    client = enter(make_admin())
    form = opened(client, "ibconnection_add") | {
        "client_id": "BnK4JV",
        "name": "Marketing",
        "platform_url": fake.urls["platform"],
        "own_domains": "assets.example.com",
        "email": SERVICE,
        "password": SERVICE_PASSWORD,
    }
    assert client.post(url("ibconnection_add"), form).status_code == 302
    connection = IBConnection.objects.get()
    assert IBSyncRun.objects.get().status == "running", "the first run begins by itself"
    assert sync(connection).status == "complete"
    page = client.get(url("ibconnection_change", connection.pk))
    assert SERVICE_PASSWORD not in page.content.decode() and SERVICE not in page.content.decode()
    again = opened(client, "ibconnection_change", connection.pk) | {"name": "Renamed"}
    assert client.post(url("ibconnection_change", connection.pk), again).status_code == 302
    connection.refresh_from_db()
    assert connection.domains == ["assets.example.com"], "what was left as it is stays"
    assert connection.name == "Renamed" and sync(connection).status == "complete", (
        "an empty password changes nothing"
    )


def test_what_cannot_be_used_is_refused_in_the_form(fake: FakeIB, carol: User) -> None:
    client = enter(make_admin())
    form = opened(client, "ibconnection_add") | {
        "client_id": "BnK4JV",
        "name": "x",
        "email": "e",
        "password": "p",
    }
    refused = client.post(url("ibconnection_add"), form | {"platform_url": "http://10.0.0.1"})
    assert "platform_url" in errors_of(refused)
    refused = client.post(
        url("ibconnection_add"),
        form | {"platform_url": "https://a.intelligencebank.com", "calls_per_minute": "601"},
    )
    assert "calls_per_minute" in errors_of(refused)


def test_every_page_opens_and_shows_only_what_the_admin_may_see(
    tenant: Tenant, mirrored: IBConnection, bobs_link: IBLink, carol: User
) -> None:
    client = enter(make_admin())
    for page in PAGES:
        shown = client.get(url(f"{page}_changelist"))
        assert shown.status_code == 200, page
        assert (
            "Legal" not in shown.content.decode() and "Marketing" not in shown.content.decode()
        ), page
    link(carol, mirrored, BOB, "bob-secret-word")
    assert "Legal" in client.get(url("ibfolder_changelist")).content.decode()
    run = IBSyncRun.objects.get()
    assert "complete" in client.get(url("ibsyncrun_change", run.pk)).content.decode()


def test_actions_start_runs_and_accept_what_is_missing(
    fake: FakeIB, tenant: Tenant, mirrored: IBConnection, carol: User
) -> None:
    for ib_id in sorted(all_ids(fake))[:6]:
        tenant.delete(ib_id)
    assert sync(mirrored).status == "tripped"
    client = enter(make_admin())
    chosen = {"_selected_action": [mirrored.pk]}
    client.post(url("ibconnection_changelist"), chosen | {"action": "accept"})
    mirrored.refresh_from_db()
    assert (mirrored.state, mirrored.accepted_missing) == ("ok", 6)
    client.post(url("ibconnection_changelist"), chosen | {"action": "sync_fully"})
    assert Job.objects.filter(kind="ib_sync", state="pending").count() == 1
    assert IBSyncRun.objects.filter(status="running", kind="full").exists()
