"""IntelligenceBank in the viewer: each sees their own tree, opens assets beside, and attaches them to a task."""

from urllib.parse import quote

from django.contrib.auth.models import User

from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import IBLink, IBResource, Task
from tests.factories import make_task
from tests.intelligencebank.worlds import folder_named
from tests.viewer.browsing import fragment, signed_in, text_of

LIBRARY = "/ib/BnK4JV"


def an_asset(tenant: Tenant) -> IBResource:
    return IBResource.objects.filter(folder__ib_id=folder_named(tenant, "Logos")).order_by("sort_name").first()


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


def test_assets_of_several_folders_are_attached_at_once(tenant: Tenant, alices_link: IBLink, alice: User) -> None:
    task, asset = make_task(title="Needs pictures"), an_asset(tenant)
    client, uri = signed_in(alice), f"ib://BnK4JV/resources/{asset.ib_id}"
    dialog = text_of(fragment(client, f"/t/{task.ref}/pick/?client=BnK4JV&folder={folder_named(tenant, 'Logos')}"))
    assert f'value="{uri}"' in dialog
    elsewhere = text_of(fragment(client, f"/t/{task.ref}/pick/?client=BnK4JV&uri={quote(uri, safe='')}"))
    assert "1 chosen in other folders" in elsewhere
    assert client.post(f"/t/{task.ref}/attach/", {"uri": [uri]}).status_code == 302
    assert Task.objects.get(pk=task.pk).references == [{"url": uri, "title": asset.name}]
    assert client.post(f"/t/{task.ref}/attach/", {}).status_code == 400
