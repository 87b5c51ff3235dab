"""Test that the official client signs in by itself, in both eras, through a user who signs in and
agrees.
"""

import asyncio

import httpx
import pytest

from backlog_site.mcp.bus import CREDENTIALS_SECONDS
from tests.browsing import Browser
from tests.mcp.clients import ERAS, call, get_stream, listening, session, wait_until_refused
from tests.mcp.oauth_clients import Storage, let_in
from tests.mcp.site import Site

PASSWORD = "correct horse battery"
ENDS_WITHIN_SECONDS = 5


def signed_in(
    site: Site,
    name: str,
    storage: Storage,
    era: str = "auto",
    reach: str | None = None,
    address: str = "",
) -> dict:
    """Authorize a client as `name` and return its identity."""
    site.elsewhere.person(name=name, roles=["contributor"], password=PASSWORD)
    browser = Browser(name, PASSWORD, reach)

    async def scenario() -> dict:
        async with let_in(address or site.mcp, browser, storage, era) as client:
            who = (await client.call_tool("fixture_whoami", {})).structured_content
            made = await client.call_tool("backlog_create", {"title": "Made by an agent"})
            return who | {"made": made.structured_content, "page": browser.consent_page}

    return asyncio.run(scenario())


@pytest.mark.parametrize("era", ERAS)
def test_the_official_client_gets_in_unaided(site: Site, era: str) -> None:
    storage = Storage()
    who = signed_in(site, "olga", storage, era)
    assert (who["user"], who["via"], who["agent"], who["scope"]) == (
        "olga",
        "mcp",
        "claude-code",
        "write",
    )
    assert "Create, edit, comment on and archive" in who["page"]
    assert "Agent of the test" in who["page"]
    change = site.elsewhere.last_change(by="olga")
    assert change["client"].startswith("oauth:") and change["client"].endswith(" Agent of the test")
    assert (change["agent"], change["scope"], change["address"]) == (
        "claude-code",
        "write",
        "127.0.0.1",
    )
    assert len(change["request_id"]) == 32


def test_it_gets_in_by_the_other_name_of_this_machine_too(site: Site) -> None:
    assert (
        signed_in(site, "olga", Storage(), address=site.mcp.replace("127.0.0.1", "localhost"))[
            "user"
        ]
        == "olga"
    )


def test_a_person_may_give_less_than_was_asked_for(site: Site) -> None:
    who = signed_in(site, "olga", Storage(), reach="read")
    assert who["scope"] == "read"
    assert who["made"]["error"]["code"] == "permission_denied"


def test_the_same_access_token_opens_rest(site: Site) -> None:
    storage = Storage()
    signed_in(site, "olga", storage)
    with site.client(storage.tokens.access_token) as http:
        assert http.get(f"{site.url}/api/v1/tasks/").status_code == 200
        status = http.get(f"{site.url}/api/v1/resource/", params={"uri": "auth://status"}).json()
        assert (status["contents"]["username"], status["contents"]["scope"]) == ("olga", "write")


@pytest.mark.parametrize("end", ["revoked by the client", "deactivated"])
def test_open_streams_end(site: Site, end: str) -> None:
    storage, name = Storage(), f"ends-{end[:3]}"
    signed_in(site, name, storage)
    token = storage.tokens.access_token
    with (
        session(site, token) as http,
        get_stream(site, http) as events,
        site.client(token) as other,
    ):
        assert call(site, http, "fixture_whoami")["user"] == name
        with listening(site, other, "mcp://backlog/tasks") as listened:
            if end == "deactivated":
                site.elsewhere.deactivate(name=name)
            else:
                form = {"token": token, "client_id": storage.client.client_id}
                assert (
                    httpx.post(
                        f"{site.url}/o/revoke_token/", data=form, trust_env=False
                    ).status_code
                    == 200
                )
            for stream in (events, listened):
                with pytest.raises(EOFError):
                    while "id" not in stream.next():
                        pass
                    raise EOFError  # the answer to subscriptions/listen ends the stream
        wait_until_refused(site, http)


def test_streams_are_asked_often_enough_to_end_in_time() -> None:
    assert CREDENTIALS_SECONDS + 1 < ENDS_WITHIN_SECONDS
