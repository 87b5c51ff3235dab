"""Test step 3 of the Connect page: green for the token of step 1, over MCP, and for nothing
else.
"""

import re
from collections.abc import Iterator
from html import unescape

import httpx
import pytest

from tests.browsing import hidden_fields
from tests.mcp.clients import initialize, modern
from tests.mcp.site import Site

PASSWORD = "connects her agents"


@pytest.fixture
def browser(site: Site) -> Iterator[httpx.Client]:
    """Yield a signed-in user's browser."""
    site.elsewhere.person(name="petra", password=PASSWORD, roles=["contributor"])
    with httpx.Client(
        base_url=site.url, follow_redirects=True, timeout=30, trust_env=False
    ) as http:
        http.headers["Referer"] = site.url
        fields = hidden_fields(http.get("/login/").text)
        assert (
            http.post(
                "/login/", data=fields | {"username": "petra", "password": PASSWORD}
            ).status_code
            == 200
        )
        yield http


def create_token(browser: httpx.Client, name: str) -> tuple[str, str]:
    """Return the secret, and the address that the page polls until it is green."""
    fields = hidden_fields(browser.get("/connect/").text)
    page = browser.post(
        "/connect/", data=fields | {"name": name, "scope": "write", "days": "30"}
    ).text
    secret, check = (
        re.search(r'id="secret">(bl_[^<]+)<', page),
        re.search(r'hx-get="(/connect/check/[^"]*)"', page),
    )
    assert secret and check
    return secret[1], unescape(check[1])


def shown(browser: httpx.Client, check: str) -> str:
    return browser.get(check, headers={"HX-Request": "true"}).text


@pytest.mark.parametrize("era", ["handshake", "newer"])
def test_only_the_new_token_over_mcp_turns_the_line_green(
    site: Site, browser: httpx.Client, era: str
) -> None:
    other, _ = create_token(browser, f"other {era}")
    secret, check = create_token(browser, f"laptop {era}")
    assert f"Waiting for the first MCP call with the token laptop {era}" in shown(browser, check)
    with site.client(secret) as http:
        assert http.get(f"{site.url}/api/v1/tasks/").status_code == 200
    with site.client(other) as http:
        assert initialize(site, http).status_code == 200
    assert "You are connected" not in shown(browser, check)
    with site.client(secret) as http:
        answer = initialize(site, http) if era == "handshake" else modern(site, http, "tools/list")
        assert answer.status_code == 200, answer.text
    green = shown(browser, check)
    assert "You are connected" in green and f"The token laptop {era} made" in green


def test_a_token_of_somebody_else_is_not_checked(site: Site, browser: httpx.Client) -> None:
    theirs = site.elsewhere.token(name="quentin", roles=["contributor"])
    with site.client(theirs) as http:
        assert initialize(site, http).status_code == 200
    for number in range(1, 60):
        line = shown(browser, f"/connect/check/?token={number}")
        assert "quentin" not in line


def test_a_person_without_a_token_is_asked_to_create_one(site: Site) -> None:
    site.elsewhere.person(name="ursula", password=PASSWORD, roles=["viewer"])
    with httpx.Client(
        base_url=site.url, follow_redirects=True, timeout=30, trust_env=False
    ) as http:
        http.headers["Referer"] = site.url
        fields = hidden_fields(http.get("/login/").text)
        http.post("/login/", data=fields | {"username": "ursula", "password": PASSWORD})
        assert "Create a token in step 1 first" in shown(http, "/connect/check/")
