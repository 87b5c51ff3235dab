"""Test IntelligenceBank in the viewer: users see their own tree, open assets beside it, and attach
them to a task.
"""

import re
from html import unescape
from urllib.parse import quote

from django.contrib.auth.models import User

from resources_app.intelligencebank import entitlements
from resources_app.intelligencebank.fake.profile import Fault
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import IBConnection, IBLink, IBResource, Task
from tests.factories import make_task
from tests.intelligencebank.mirrors import expire_rights, sync
from tests.intelligencebank.worlds import ALICE, folder_named
from tests.viewer.browsing import fragment, signed_in, text_of

LIBRARY = "/ib/BnK4JV"


def an_asset(tenant: Tenant) -> IBResource:
    return (
        IBResource.objects.filter(folder__ib_id=folder_named(tenant, "Logos"))
        .order_by("sort_name")
        .first()
    )


def test_everybody_sees_their_own_tree(
    tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    assert signed_in(alice).get("/ib/")["Location"] == f"{LIBRARY}/root/"
    mine, theirs = (text_of(signed_in(person).get(f"{LIBRARY}/root/")) for person in (alice, bob))
    assert "Marketing" in mine and "Legal" not in mine
    assert "Legal" in theirs and "Marketing" not in theirs
    assert signed_in(bob).get(f"{LIBRARY}/{folder_named(tenant, 'Logos')}/").status_code == 404


def test_an_asset_opens_beside_and_only_for_who_sees_it(
    tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    asset = an_asset(tenant)
    folder = text_of(signed_in(alice).get(f"{LIBRARY}/{folder_named(tenant, 'Logos')}/"))
    uri = f"ib://BnK4JV/resources/{asset.ib_id}"
    assert f'data-uri="{uri}"' in folder
    path = f"/open/?uri={quote(uri, safe='')}"
    assert f'data-copy="{uri}"' in text_of(fragment(signed_in(alice), path))
    assert fragment(signed_in(bob), path).status_code == 404


def test_assets_of_several_folders_are_attached_at_once(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    task, asset = make_task(title="Needs pictures"), an_asset(tenant)
    client, uri = signed_in(alice), f"ib://BnK4JV/resources/{asset.ib_id}"
    dialog = text_of(
        fragment(
            client, f"/t/{task.ref}/pick/?client=BnK4JV&folder={folder_named(tenant, 'Logos')}"
        )
    )
    assert f'value="{uri}"' in dialog
    elsewhere = text_of(
        fragment(client, f"/t/{task.ref}/pick/?client=BnK4JV&uri={quote(uri, safe='')}")
    )
    assert "1 chosen in other folders" in elsewhere
    assert client.post(f"/t/{task.ref}/attach/", {"uri": [uri]}).status_code == 302
    assert Task.objects.get(pk=task.pk).references == [{"url": uri, "title": asset.name}]
    assert client.post(f"/t/{task.ref}/attach/", {}).status_code == 400


def test_the_picker_reaches_every_asset_of_a_folder(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    logos = folder_named(tenant, "Logos")
    tenant.fill(80, [logos])
    sync(alices_link.connection)
    client, path, seen = (
        signed_in(alice),
        f"/t/{make_task().ref}/pick/?client=BnK4JV&folder={logos}",
        set(),
    )
    while path:
        dialog = text_of(fragment(client, path))
        seen |= set(re.findall(r'name="uri" value="([^"]+)"', dialog))
        more = re.search(r'hx-get="([^"]+cursor=[^"]+)"', dialog)
        path = unescape(more[1]) if more else ""
    assert len(seen) == IBResource.objects.filter(folder__ib_id=logos).count() == 90


def test_whoever_is_not_linked_is_told_so_and_led_there(
    fake: FakeIB, mirrored: IBConnection, alice: User
) -> None:
    client = signed_in(alice)
    assert "is not linked" in text_of(client.get(f"{LIBRARY}/root/"))
    begun = text_of(client.post(f"{LIBRARY}/link/"))
    assert f"{fake.urls['platform']}/auth/" in begun
    unfinished = text_of(client.post(f"{LIBRARY}/link/", {"finished": "1"}))
    assert "not finished yet" in unfinished and f"{fake.urls['platform']}/auth/" in unfinished
    [token] = fake.pending
    fake.finish_browser_login(token, "BnK4JV", ALICE)
    assert client.post(f"{LIBRARY}/link/", {"finished": "1"})["Location"] == f"{LIBRARY}/root/"
    assert "Your rights are being read" in text_of(client.get(f"{LIBRARY}/root/"))


def test_whoever_sees_nothing_because_intelligencebank_is_away_is_told_so(
    fake: FakeIB, alices_link: IBLink, alice: User
) -> None:
    fake.faults = [Fault("503", "folders", times=99)]
    expire_rights(alices_link)
    entitlements.read_rights(alices_link)
    page = text_of(signed_in(alice).get(f"{LIBRARY}/root/"))
    assert "Your rights could not be read" in page and "This folder is empty" not in page
