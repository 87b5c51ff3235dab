"""Test that odd values from IntelligenceBank become visible states, never unexpected errors."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import mapping
from resources_app.intelligencebank.failures import ForbiddenHost, IBFailure, Unreachable
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.intelligencebank.hosts import HostPolicy
from resources_app.models import IBConnection, IBLink, IBResource
from tests.api.clients import ApiClient
from tests.intelligencebank.mirrors import sync
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD, client_for, folder_named

ADDRESSES = [
    "https://x.intelligencebank.com:99999/a.png",
    "https://x.intelligencebank.com:abc/a.png",
    "https://x.intelligencebank.com:-1/a.png",
    "https://[::1",
    "https://x.intelligencebank.com/a\x01.png",
    "https://x.intelligencebank.com/a\x7f.png",
    "https://x.intelligencebank.com/\ud800.png",
]


@pytest.fixture(autouse=True)
def own_cache(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path


@pytest.fixture
def say(fake: FakeIB, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that changes the fake's login responses."""
    usual = fake.login_body

    def change(**over: Any) -> None:
        monkeypatch.setattr(fake, "login_body", lambda sid: usual(sid) | over)

    return change


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_address_is_more_than_forbidden(address: str) -> None:
    with pytest.raises(ForbiddenHost):
        HostPolicy().check(address)
    assert mapping.unsigned(address) == ""


@pytest.mark.parametrize("address", [address for address in ADDRESSES if "\ud800" not in address])
def test_a_thumbnail_at_an_odd_address_is_not_found(
    tenant: Tenant, alices_link: IBLink, alice: User, address: str
) -> None:
    asset = IBResource.objects.filter(folder__ib_id=folder_named(tenant, "Logos")).first()
    IBResource.objects.filter(pk=asset.pk).update(thumbnail=address)
    assert (
        ApiClient(alice).get(f"/api/v1/ib/BnK4JV/resources/{asset.ib_id}/thumbnail/").status_code
        == 404
    )


@pytest.mark.parametrize("hours", [float("nan"), "nan", "-inf", "1e999", "x", None, [], "9" * 5000])
def test_an_odd_length_of_a_session_is_a_session(
    fake: FakeIB, tenant: Tenant, say: Any, hours: Any
) -> None:
    say(logintimeoutperiod=hours)
    client = client_for(fake)
    assert client.login(SERVICE, SERVICE_PASSWORD).expires_at
    client.close()


@pytest.mark.parametrize(
    "over",
    [
        {"sid": "сессия-с-буквами"},
        {"sid": "sid\r\nx: y" + "0" * 20},
        {"sid": ["a"] * 10},
        {"useruuid": "a\x00b"},
        {"clientid": "Ключ"},
        *({"apiV3url": address} for address in ADDRESSES if "\ud800" not in address),
        {"apiV3url": 7},
    ],
    ids=str,
)
def test_an_odd_login_is_a_failure_and_a_run_that_says_so(
    fake: FakeIB, connection: IBConnection, say: Any, over: dict[str, Any]
) -> None:
    say(**over)
    client = client_for(fake)
    with pytest.raises(IBFailure):
        client.login(SERVICE, SERVICE_PASSWORD)
    client.close()
    assert sync(connection).status in {"failed", "paused", "auth_required"}


def test_an_odd_name_of_a_person_is_cleaned(fake: FakeIB, tenant: Tenant, say: Any) -> None:
    say(firstname="An\x00n\u202e", lastname="L\ud800ee")
    client = client_for(fake)
    assert client.login(SERVICE, SERVICE_PASSWORD).person == "Ann Lee"
    client.close()


@pytest.mark.parametrize("count", ["9" * 5000, 10**400, -1, True, "x", None])
def test_an_odd_count_is_unreachable(count: Any) -> None:
    with pytest.raises(Unreachable):
        api._page({"response": {"rows": [], "count": count}}, api.all_resources())
