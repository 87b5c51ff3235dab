"""Test the client against the fake: logins, lists, files, and every fault a network can have."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from resources_app.intelligencebank import client as api
from resources_app.intelligencebank.client import IBClient, renewing
from resources_app.intelligencebank.failures import (
    AuthRequired,
    ForbiddenHost,
    IBFailure,
    Refused,
    SessionExpired,
    Unreachable,
)
from resources_app.intelligencebank.fake.profile import AUTH_ERRORS, FAULTS, Fault, Profile
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import ROOT_ID, Tenant
from tests.intelligencebank.worlds import (
    ALICE,
    SERVICE,
    SERVICE_PASSWORD,
    client_for,
    fill_tenant,
    folder_named,
    running_fake,
    service_session,
)


@pytest.fixture
def fake() -> Iterator[FakeIB]:
    with running_fake() as fake:
        yield fake


@pytest.fixture
def tenant(fake: FakeIB) -> Tenant:
    return fill_tenant(fake, resources=250)


@pytest.fixture
def client(fake: FakeIB, tenant: Tenant) -> Iterator[IBClient]:
    client = client_for(fake, body=2_000_000)
    yield client
    client.close()


def give_up_early(client: IBClient, kind: str) -> None:
    """Shorten the timeout for a slow server only.

    Other faults get the usual time, because a busy machine is no fault.
    """
    if kind.startswith("slow"):
        client.transport.limits = replace(client.transport.limits, total=2)


def test_a_login_names_the_tenant_its_api_and_its_end(fake: FakeIB, client: IBClient) -> None:
    session = service_session(client)
    assert (session.client_id, session.api_url, session.is_main_admin) == (
        "BnK4JV",
        fake.urls["v3"],
        True,
    )
    assert session.sid not in repr(session)


@pytest.mark.parametrize("login_failure", ["200", "401"])
def test_a_wrong_password_is_sent_once(fake: FakeIB, client: IBClient, login_failure: str) -> None:
    fake.profile = replace(fake.profile, login_failure=login_failure)
    with pytest.raises(AuthRequired):
        client.login(SERVICE, "wrong")
    assert fake.calls("login") == 1


def test_a_person_signs_in_with_the_browser(fake: FakeIB, client: IBClient) -> None:
    token, url = client.start_browser_login()
    assert url == f"{fake.urls['platform']}/auth/?login=0&token={token}"
    assert client.poll_browser_login(token) is None
    fake.finish_browser_login(token, "BnK4JV", ALICE)
    session = client.poll_browser_login(token)
    assert session and session.client_id == "BnK4JV" and not session.is_main_admin
    assert [row["name"] for row in client.fetch(session, api.resources_in("")).rows] != []


def test_both_forms_of_the_list_give_the_same(client: IBClient, tenant: Tenant) -> None:
    session = service_session(client)
    for listing in (
        api.folders_in(""),
        api.folders_in(ROOT_ID),
        api.resources_in(folder_named(tenant, "Logos"), 10),
    ):
        by_post, by_get = client.fetch(session, listing), client.fetch_by_url(session, listing)
        assert [row["_id"] for row in by_post.rows] == [row["_id"] for row in by_get.rows] != []
        assert by_post.count == by_get.count


def test_a_hundred_ids_are_one_call(fake: FakeIB, client: IBClient) -> None:
    session = service_session(client)
    ids = [row["_id"] for row in client.fetch(session, api.all_resources()).rows]
    page = client.fetch(session, api.resources_by_id(ids))
    assert {row["_id"] for row in page.rows} == set(ids) and fake.calls("by_id") == 1


def test_a_file_comes_with_the_session_and_only_with_the_right(
    client: IBClient, tenant: Tenant
) -> None:
    session = service_session(client)
    row = client.fetch(session, api.all_resources()).rows[0]
    with client.open_file(session, row["_id"]) as response:
        assert response.status_code == 200 and response.read().startswith(b"\x89PNG")
    with pytest.raises(Refused):
        client.open_file(session, "../etc")


@pytest.mark.parametrize("expired", ["401", *AUTH_ERRORS])
def test_an_expired_session_is_renewed_once(fake: FakeIB, client: IBClient, expired: str) -> None:
    form = {"expired": "401"} if expired == "401" else {"expired": "200", "expired_text": expired}
    fake.profile = replace(fake.profile, **form)
    session = service_session(client)
    fake.expire_sessions()
    page, renewed = renewing(
        lambda used: client.fetch(used, api.all_resources()),
        session,
        lambda _: service_session(client),
    )
    assert len(page.rows) == 100 and renewed.sid != session.sid
    fake.expire_sessions()
    with pytest.raises(AuthRequired):
        renewing(lambda used: client.fetch(used, api.all_resources()), renewed, lambda _: renewed)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_overcome_or_named(fake: FakeIB, client: IBClient, kind: str) -> None:
    """Check that transient faults are retried, permanent ones are not, and no other error
    escapes.
    """
    session = service_session(client)
    give_up_early(client, kind)
    fake.faults = [Fault(kind, "resources")]
    try:
        page = client.fetch(session, api.all_resources())
    except IBFailure as failure:
        assert kind in {"400", "401", "403", "404", "409", "redirect"}
        assert isinstance(failure, SessionExpired if kind == "401" else Refused)
        assert fake.calls("resources") == 1
    else:
        assert len(page.rows) == 100
        assert fake.calls("resources") == (1 if kind in {"duplicates", "bad_rows"} else 2)


@pytest.mark.parametrize(
    "kind", ["503", "html", "reset", "truncated", "slow_headers", "gzip_bomb", "null_response"]
)
def test_a_fault_that_stays_ends_after_six_attempts(
    fake: FakeIB, client: IBClient, kind: str
) -> None:
    session = service_session(client)
    give_up_early(client, kind)
    fake.faults = [Fault(kind, "resources", times=99)]
    with pytest.raises(Unreachable):
        client.fetch(session, api.all_resources())
    assert fake.calls("resources") == 6


def test_trying_again_ends_with_the_time_there_is_for_it(fake: FakeIB, client: IBClient) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    client.patience = replace(
        client.patience, seconds=10, sleep=sleep, jitter=lambda: 1.0, clock=lambda: now[0]
    )
    session = service_session(client)
    fake.faults = [Fault("503", "resources", times=99)]
    with pytest.raises(Unreachable):
        client.fetch(session, api.all_resources())
    assert (fake.calls("resources"), now) == (4, [1 + 2 + 4])


@pytest.mark.parametrize("form", ["429", "503", "200"])
@pytest.mark.parametrize("header", ["", "seconds", "date", "nonsense"])
def test_an_overloaded_server_is_given_the_time_it_asks_for(
    fake: FakeIB, client: IBClient, form: str, header: str
) -> None:
    waited: list[float] = []
    client.patience = replace(client.patience, sleep=waited.append, jitter=lambda: 0.5)
    fake.profile = Profile(overload=form, retry_after=header)
    session = service_session(client)
    fake.faults = [Fault("429", "resources")]
    assert client.fetch(session, api.all_resources()).rows
    [seconds] = waited
    assert (0 <= seconds <= 2) if header in {"seconds", "date"} else seconds == 0.5


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example.com",
        "http://apius.intelligencebank.com",
        "https://intelligencebank.com.evil.example",
        "https://user@api.intelligencebank.com",
        "https://127.0.0.1",
        "https://api.intelligencebank.com:8443",
        "ftp://api.intelligencebank.com",
    ],
)
def test_an_address_outside_the_allow_list_is_never_called(
    fake: FakeIB, client: IBClient, address: str
) -> None:
    fake.urls["v3"] = address
    with pytest.raises(ForbiddenHost):
        client.login(SERVICE, SERVICE_PASSWORD)


def test_the_vendors_hosts_and_a_customers_own_domain_are_on_the_list(client: IBClient) -> None:
    hosts = replace(client.transport.hosts, domains=frozenset({"assets.example.com"}))
    assert (
        hosts.check("https://usprod2usv3.intelligencebank.com/api")
        == "https://usprod2usv3.intelligencebank.com"
    )
    assert hosts.check("https://assets.example.com/x") == "https://assets.example.com"
    assert not hosts.allows_address("assets.example.com", 443, "10.0.0.5")
    assert not hosts.allows_address("assets.example.com", 443, "169.254.169.254")
    assert hosts.allows_address("assets.example.com", 443, "93.184.216.34")
