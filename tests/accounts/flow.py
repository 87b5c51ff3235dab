"""Run the steps of OAuth one by one, with Django's own client as the browser."""

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from tests.browsing import hidden_fields

REDIRECT = "http://127.0.0.1:7777/callback"
VERIFIER = "v" * 64
CHALLENGE = (
    base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
)
RESOURCE = settings.OAUTH_RESOURCES[0]
METADATA = {
    "client_name": "Agent",
    "redirect_uris": [REDIRECT],
    "token_endpoint_auth_method": "none",
}


def program() -> Client:
    """Return a client without cookies, which it must not need."""
    return Client(enforce_csrf_checks=True)


def register(**over: Any) -> Any:
    return program().post("/o/register/", METADATA | over, content_type="application/json")


def replace(registered: Any, body: Any) -> Any:
    """Replace the metadata of a registered client (RFC 7592)."""
    known = registered.json()
    headers = {"Authorization": f"Bearer {known['registration_access_token']}"}
    path = urlsplit(known["registration_client_uri"]).path
    return program().put(path, body, content_type="application/json", headers=headers)


def client_id() -> str:
    answer = register()
    assert answer.status_code == 201, answer.content
    return str(answer.json()["client_id"])


def question(client: str, **over: Any) -> str:
    """Return the URL a client sends the browser to; None leaves a parameter out."""
    parameters = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": REDIRECT,
        "state": "s",
        "scope": "read write",
        "code_challenge": CHALLENGE,
        "code_challenge_method": "S256",
        "resource": RESOURCE,
    } | over
    return "/o/authorize/?" + urlencode(
        {name: value for name, value in parameters.items() if value is not None}
    )


def browser_of(user: User, **options: Any) -> Client:
    browser = Client(**options)
    browser.force_login(user)
    return browser


def answered(location: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def agree(user: User, url: str, **over: Any) -> dict[str, str]:
    browser = browser_of(user)
    page = browser.get(url)
    assert page.status_code == 200, page.content
    fields = hidden_fields(page.content.decode()) | {"allow": "Authorize"} | over
    sent = browser.post("/o/authorize/", fields)
    assert sent.status_code == 302, sent.content
    return answered(sent["Location"])


def exchange(client: str, code: str, **over: Any) -> Any:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "client_id": client,
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        "resource": RESOURCE,
    } | over
    return program().post(
        "/o/token/", {name: value for name, value in form.items() if value is not None}
    )


def refresh(client: str, token: str, **over: Any) -> Any:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client} | over
    return program().post("/o/token/", form)


def let_in(user: User, **over: Any) -> tuple[str, dict[str, Any]]:
    """Return the client's id and the tokens it got."""
    client = client_id()
    answer = exchange(client, agree(user, question(client), **over)["code"])
    assert answer.status_code == 200, answer.content
    return client, answer.json()


def reads(access_token: str) -> int:
    """Return the status of a REST read with the token."""
    return int(
        Client()
        .get("/api/v1/tasks/", headers={"Authorization": f"Bearer {access_token}"})
        .status_code
    )
