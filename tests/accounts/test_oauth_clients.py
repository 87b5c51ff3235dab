"""Test how clients become known: by registering, or by a document at the address that is their
id.
"""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client
from oauth2_provider import cimd
from oauth2_provider.models import Application

from tests.accounts import flow
from tests.accounts.flow import METADATA, agree, exchange, question, register, replace

CLIENT_DOCUMENT = "https://agent.example/client.json"


@pytest.mark.parametrize(
    "uris",
    [
        ["http://evil.example/callback"],
        ["http://127.0.0.1.evil.example/callback"],
        ["javascript:alert(1)"],
        ["data:text/html,x"],
        ["file:///etc/passwd"],
        ["https://agent.example/callback#fragment"],
        ["https://agent.example/\u0000"],
        ["https://agent.example/ http://evil.example/"],
        ["https://agent.example/\ud800"],
        ["http://[::1/callback"],
        [],
        "https://agent.example/callback",
        [7],
        ["https://agent.example/"] * 11,
    ],
)
def test_an_unsafe_redirect_address_is_not_registered(db: None, uris: Any) -> None:
    answer = register(redirect_uris=uris)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert not Application.objects.exists()
    answer = replace(register(), METADATA | {"redirect_uris": uris})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")
    assert Application.objects.get().redirect_uris == flow.REDIRECT


@pytest.mark.parametrize(
    "uri", ["https://agent.example/cb", "http://localhost:1/cb", "cursor://anysphere/oauth"]
)
def test_addresses_of_agents_are_registered(db: None, uri: str) -> None:
    assert register(redirect_uris=[uri]).status_code == 201


@pytest.mark.parametrize(
    "over",
    [
        {"grant_types": ["implicit"]},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["password"]},
        {"grant_types": 7},
        {"client_name": "two\nlines"},
        {"client_name": "no\u0000thing"},
        {"client_name": "\ud800"},
        {"client_name": "x" * 101},
        {"client_name": 7},
        {"token_endpoint_auth_method": "private_key_jwt"},
    ],
)
def test_what_agents_do_not_need_is_not_registered(db: None, over: dict[str, Any]) -> None:
    assert register(**over).status_code == 400
    assert replace(register(), METADATA | over).status_code == 400
    assert Application.objects.get().name == "Agent"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"[" * 20_000, b'{"a": "' + b"x" * 20_000 + b'"}']
)
def test_a_broken_registration_is_refused(db: None, body: bytes) -> None:
    assert replace(register(), body).status_code == 400
    assert Client().post("/o/register/", body, content_type="application/json").status_code == 400


def test_a_client_renames_and_removes_itself_and_nobody_else(db: None) -> None:
    first, second = register(), register(client_name="Another")
    assert replace(first, METADATA | {"client_name": "Renamed"}).json()["client_name"] == "Renamed"
    path = urlsplit(second.json()["registration_client_uri"]).path
    stolen = {"Authorization": f"Bearer {first.json()['registration_access_token']}"}
    for send in (flow.program().get, flow.program().delete):
        assert send(path, headers=stolen).status_code == 401
    own = {"Authorization": f"Bearer {second.json()['registration_access_token']}"}
    assert flow.program().delete(path, headers=own).status_code == 204
    assert [client.name for client in Application.objects.all()] == ["Renamed"]


def test_a_program_on_this_machine_may_listen_on_any_port(alice: User) -> None:
    client = flow.client_id()
    elsewhere = flow.REDIRECT.replace(":7777", ":50123")
    code = agree(alice, question(client, redirect_uri=elsewhere))["code"]
    assert exchange(client, code, redirect_uri=elsewhere).status_code == 200


class Documents:
    """Fake the web that serves a client's document, at the edge of the network."""

    document: dict[str, Any] = {
        "client_id": CLIENT_DOCUMENT,
        "client_name": "Agent with a document",
        "redirect_uris": [flow.REDIRECT],
        "token_endpoint_auth_method": "none",
    }

    def fetch(self, client_id: str) -> tuple[dict[str, Any], int]:
        return self.document, 300


@pytest.fixture
def documents(settings: Any) -> None:
    name = f"{__name__}.Documents"
    settings.OAUTH2_PROVIDER = settings.OAUTH2_PROVIDER | {"CIMD_METADATA_FETCHER": name}


def test_a_client_with_a_document_needs_no_registration(alice: User, documents: None) -> None:
    url = question(CLIENT_DOCUMENT)
    page = flow.browser_of(alice).get(url).content.decode()
    assert "Agent with a document" in page and CLIENT_DOCUMENT in page
    answer = exchange(CLIENT_DOCUMENT, agree(alice, url)["code"])
    assert flow.reads(answer.json()["access_token"]) == 200


@pytest.mark.parametrize(
    "client",
    [
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://10.0.0.1/client.json",
        "https://[::1]/client.json",
        "https://[::ffff:127.0.0.1]/client.json",
        "https://[64:ff9b::7f00:1]/client.json",
        "https://[64:ff9b::5db8:d822]/client.json",
        "https://[2002:7f00:1::]/client.json",
        "https://[fec0::1]/client.json",
        "https://224.0.0.1/client.json",
        "https://[ff0e::1]/client.json",
        "https://0x7f000001/client.json",
        "https://user@agent.example/client.json",
        "https://agent.example/a/../client.json",
        "https://agent.example",
    ],
)
def test_a_document_is_never_fetched_from_inside(
    alice: User, client: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []
    monkeypatch.setattr(
        cimd.urllib3, "HTTPSConnectionPool", lambda **options: fetched.append(options["host"])
    )
    assert flow.browser_of(alice).get(question(client)).status_code == 400
    assert not fetched
