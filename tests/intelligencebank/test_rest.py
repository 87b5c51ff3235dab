"""Test REST: folders, assets, thumbnails, downloads after a live check, and linking the user's
account.
"""

from typing import Any

import httpx
import pytest
from django.contrib.auth.models import User
from django.test import Client

from resources_app.intelligencebank import files
from resources_app.intelligencebank.fake.profile import Fault
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import IBConnection, IBLink, IBResource
from tests.api.clients import ApiClient, error_of
from tests.intelligencebank.mirrors import expire_rights, sync
from tests.intelligencebank.worlds import ALICE, folder_named

BASE = "/api/v1/ib/BnK4JV"


@pytest.fixture(autouse=True)
def own_cache(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path


def body_of(response: Any) -> bytes:
    return b"".join(response)


def an_asset(tenant: Tenant, folder: str) -> IBResource:
    return (
        IBResource.objects.filter(folder__ib_id=folder_named(tenant, folder))
        .order_by("ib_id")
        .first()
    )


def test_folders_and_assets_as_the_address_gives_them(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    client = ApiClient(alice)
    assert client.get("/api/v1/ib/").json()["results"][0]["client_id"] == "BnK4JV"
    root = client.get(f"{BASE}/folders/root/").json()
    assert [one["name"] for one in root["subfolders"]] == ["Marketing"]
    page = client.get(f"{BASE}/folders/{folder_named(tenant, 'Logos')}/resources/?limit=3").json()
    assert len(page["results"]) == 3 and page["next_cursor"]
    again = client.get(f"{BASE}/folders/{folder_named(tenant, 'Logos')}/resources/?limit=3").json()
    assert again["next_cursor"] == page["next_cursor"], "an unchanged list has an unchanged ETag"
    asset = client.get(f"{BASE}/resources/{page['results'][0]['id']}/")
    assert asset.json()["file"]["mime_type"] and asset["ETag"]
    assert client.get(f"{BASE}/folders/{folder_named(tenant, 'Legal')}/").status_code == 404
    assert error_of(client.get(f"{BASE}/folders/nonsense/"))["code"] == "invalid_uri"


def test_a_list_that_changed_between_two_pages_is_begun_again(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    client, logos = ApiClient(alice), folder_named(tenant, "Logos")
    path = f"{BASE}/folders/{logos}/resources/?limit=4"
    first = client.get(path).json()
    renamed = first["results"][0]["id"]
    assert sync(alices_link.connection).status == "complete"
    tenant.update(an_asset(tenant, "Photos").ib_id, name="In another list")
    assert sync(alices_link.connection).counters["updated"] == 1
    second = client.get(f"{path}&cursor={first['next_cursor']}").json()
    assert second["results"], "a run that changes nothing here ends no list"
    tenant.update(renamed, name="zzz it would come a second time")
    sync(alices_link.connection, "incremental")
    for cursor in (first["next_cursor"], second["next_cursor"]):
        refused = client.get(f"{path}&cursor={cursor}")
        assert (refused.status_code, error_of(refused)["code"]) == (409, "conflict")
        assert "without the cursor" in error_of(refused)["suggestion"]
    names = walked(client, path, "results")
    assert len(names) == len(set(names)) == 10 and "zzz it would come a second time" in names


def test_a_list_of_folders_that_changed_is_begun_again_too(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    client, path = ApiClient(alice), f"{BASE}/folders/{folder_named(tenant, 'Marketing')}/?limit=1"
    cursor = client.get(path).json()["next_cursor"]
    assert client.get(f"{path}&cursor={cursor}").status_code == 200
    tenant.folders[folder_named(tenant, "Logos")].name = "Zebras"
    sync(alices_link.connection)
    assert error_of(client.get(f"{path}&cursor={cursor}"))["code"] == "conflict"
    assert walked(client, path, "subfolders") == ["Photos", "Zebras"]


def walked(client: ApiClient, path: str, what: str) -> list[str]:
    names, cursor = [], ""
    while cursor is not None:
        page = client.get(f"{path}&cursor={cursor}").json()
        names += [one["name"] for one in page[what]]
        cursor = page["next_cursor"]
    return names


def test_a_thumbnail_is_fetched_once_and_only_for_who_sees_it(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    asset = an_asset(tenant, "Logos")
    path = f"{BASE}/resources/{asset.ib_id}/thumbnail/"
    for _ in range(2):
        shown = ApiClient(alice).get(path)
        assert shown.status_code == 200 and shown["Content-Type"] == "image/png"
        assert (
            shown["X-Content-Type-Options"] == "nosniff"
            and "sandbox" in shown["Content-Security-Policy"]
        )
    assert fake.calls("cdn") == 1
    assert ApiClient(bob).get(path).status_code == 404
    assert (
        ApiClient(alice)
        .get(f"{BASE}/folders/{folder_named(tenant, 'Logos')}/thumbnail/")
        .status_code
        == 200
    )


@pytest.mark.parametrize("content", [b"<svg onload=alert(1)>", b"<html>", b""])
def test_only_pictures_are_shown_as_pictures(
    tenant: Tenant,
    alices_link: IBLink,
    alice: User,
    content: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "_fetch_public", lambda connection, url: content)
    assert (
        ApiClient(alice)
        .get(f"{BASE}/resources/{an_asset(tenant, 'Logos').ib_id}/thumbnail/")
        .status_code
        == 404
    )


def test_a_thumbnail_elsewhere_is_not_fetched(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    asset = an_asset(tenant, "Logos")
    IBResource.objects.filter(pk=asset.pk).update(
        thumbnail="http://169.254.169.254/latest/meta-data"
    )
    assert ApiClient(alice).get(f"{BASE}/resources/{asset.ib_id}/thumbnail/").status_code == 404


@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume")
def test_a_download_asks_intelligencebank_as_this_person(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    asset = an_asset(tenant, "Photos")
    path = f"{BASE}/resources/{asset.ib_id}/download/"
    response = ApiClient(alice).get(path)
    assert response.status_code == 200 and body_of(response).startswith(b"\x89PNG")
    assert (
        response["Content-Disposition"].startswith("attachment")
        and response["Cache-Control"] == "private, no-store"
    )
    assert ApiClient(bob).get(path).status_code == 404
    legal = an_asset(tenant, "Legal")
    refused = ApiClient(bob).get(f"{BASE}/resources/{legal.ib_id}/download/")
    assert (refused.status_code, error_of(refused)["code"]) == (403, "permission_denied"), (
        "a preview is no download"
    )
    tenant.people[ALICE].grants.clear()
    assert ApiClient(alice).get(path).status_code == 404, "the mirror's word is not enough"
    fake.expire_sessions()
    assert ApiClient(alice).get(path).status_code == 403
    assert ApiClient(alice).get(f"{BASE}/resources/{asset.ib_id}/").status_code == 404, (
        "no session, no rights"
    )


@pytest.mark.parametrize("kind", ["gzip_twice", "gzip_bomb"])
def test_a_download_is_unpacked_within_a_bound(
    fake: FakeIB,
    tenant: Tenant,
    alices_link: IBLink,
    alice: User,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "MAX_DOWNLOAD", 1_000_000)
    fake.faults = [Fault(kind, "file", times=99)]
    refused = ApiClient(alice).get(f"{BASE}/resources/{an_asset(tenant, 'Photos').ib_id}/download/")
    assert (refused.status_code, error_of(refused)["code"]) == (503, "unavailable")


def test_a_person_links_and_unlinks_their_account(
    fake: FakeIB, mirrored: IBConnection, alice: User
) -> None:
    client = ApiClient(alice)
    assert client.get(f"{BASE}/link/").json()["state"] == "not_linked"
    begun = client.request("post", f"{BASE}/link/", {}).json()
    token = begun["sign_in_url"].rpartition("=")[2]
    assert begun["state"] == "pending" and client.get(f"{BASE}/link/").json() == begun, (
        "and again where to sign in"
    )
    page = httpx.get(begun["sign_in_url"], trust_env=False).text
    assert ALICE in page and not [secret for secret in fake.secrets if secret in page]
    sent = {"client": "BnK4JV", "email": ALICE}
    assert "You are signed in" in httpx.post(begun["sign_in_url"], data=sent, trust_env=False).text
    over = begun["sign_in_url"].replace(token, "tok-nobody")
    assert "over" in httpx.post(over, data=sent, trust_env=False).text
    assert client.get(f"{BASE}/link/").json()["state"] == "linked"
    from resources_app import tasks  # noqa: F401
    from resources_app.jobs import queue

    queue.sweep()
    assert [one["name"] for one in client.get(f"{BASE}/folders/root/").json()["subfolders"]] == [
        "Marketing"
    ]
    assert client.request("delete", f"{BASE}/link/").status_code == 204
    assert client.get(f"{BASE}/folders/root/").json()["subfolders"] == []


def test_nothing_is_shown_to_who_has_no_role(mirrored: IBConnection, mallory: User) -> None:
    client = Client()
    client.force_login(mallory)
    assert client.get("/api/v1/ib/").json()["results"] == []
    for path in ("folders/root/", "link/"):
        assert client.get(f"{BASE}/{path}").status_code == 404


def test_no_answer_ever_holds_a_secret(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    client = ApiClient(alice)
    asset = an_asset(tenant, "Logos")
    answers = [
        client.get(f"{BASE}/{path}").content.decode()
        for path in (
            "folders/root/",
            "folders/root/resources/",
            f"resources/{asset.ib_id}/",
            "link/",
        )
    ]
    answers.append(
        client.get(
            "/api/v1/search/?q=asset&types=ib_resource&include_content=true"
        ).content.decode()
    )
    expire_rights(alices_link)
    answers.append(client.get("/api/v1/resource/?uri=workflow://workflows").content.decode())
    assert all(len(answer) > 50 for answer in answers)
    assert not [secret for secret in fake.secrets for answer in answers if secret in answer]
