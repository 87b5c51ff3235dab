"""Test OAuth step by step: what is granted, and everything that is rejected on the way."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from oauth2_provider.models import AccessToken, RefreshToken

from resources_app.identity.credentials import recognise
from tests.accounts import flow
from tests.accounts.flow import (
    RESOURCE,
    agree,
    client_id,
    exchange,
    let_in,
    question,
    reads,
    refresh,
)


def test_the_metadata_lead_a_client_from_the_resource_to_the_endpoints(db: None) -> None:
    for path in (
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ):
        protected = Client().get(path).json()
        assert protected["resource"] == RESOURCE
        assert protected["authorization_servers"] == [settings.PUBLIC_URL]
        assert protected["scopes_supported"] == ["admin", "read", "write"]
    server = Client().get("/.well-known/oauth-authorization-server").json()
    assert server["issuer"] == settings.PUBLIC_URL
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["response_types_supported"] == ["code"]
    assert server["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert server["client_id_metadata_document_supported"] is True
    assert server["authorization_response_iss_parameter_supported"] is True
    assert "none" in server["token_endpoint_auth_methods_supported"]
    for name in (
        "authorization_endpoint",
        "token_endpoint",
        "revocation_endpoint",
        "registration_endpoint",
    ):
        assert server[name].startswith(f"{settings.PUBLIC_URL}/o/")
    assert "introspection_endpoint" not in server


def test_both_names_of_this_machine_are_its_resource(db: None) -> None:
    metadata = (
        Client()
        .get("/.well-known/oauth-protected-resource/mcp", headers={"Host": "localhost:8000"})
        .json()
    )
    assert metadata["resource"] == "http://localhost:8000/mcp"
    for host, told in (("localhost:8000", "localhost:8000"), ("localhost:1", "127.0.0.1:8000")):
        challenge = Client().get("/api/v1/tasks/", headers={"Host": host})["WWW-Authenticate"]
        assert f'resource_metadata="http://{told}/.well-known/' in challenge


def test_a_stranger_is_told_where_to_ask(db: None) -> None:
    challenge = Client().get("/api/v1/tasks/")["WWW-Authenticate"]
    assert (
        f'resource_metadata="{settings.PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"'
        in challenge
    )
    assert 'scope="read write"' in challenge


def test_a_token_acts_for_its_user_within_its_scope_and_is_kept_as_a_hash(alice: User) -> None:
    _, tokens = let_in(alice)
    credential = recognise(tokens["access_token"])
    assert credential and (credential.user, credential.scope, credential.name) == (
        alice,
        "write",
        "Agent",
    )
    assert AccessToken.objects.filter(user=alice).values_list("token", flat=True).get() == ""
    assert RefreshToken.objects.values_list("token", flat=True).get() == ""
    assert tokens["scope"] == "read write"


def test_the_answer_names_its_issuer_and_the_state(alice: User) -> None:
    answer = agree(alice, question(client_id()))
    assert (answer["iss"], answer["state"]) == (settings.PUBLIC_URL, "s")


def test_a_viewer_can_give_no_more_than_reading(bob: User) -> None:
    _, tokens = let_in(bob)
    assert tokens["scope"] == "read"
    client = client_id()
    browser = flow.browser_of(bob)
    fields = flow.hidden_fields(browser.get(question(client, scope="admin")).content.decode())
    forged = browser.post("/o/authorize/", fields | {"allow": "Authorize", "reach": "admin"})
    assert forged.status_code == 403


def test_a_forged_scope_in_the_form_stays_within_the_role(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client, scope="read"), scope="read write admin", reach="write")[
        "code"
    ]
    assert exchange(client, code).json()["scope"] == "read write"


def test_who_has_no_role_can_let_nobody_in(mallory: User) -> None:
    page = flow.browser_of(mallory).get(question(client_id())).content.decode()
    assert "You have no role here" in page and 'value="Authorize"' not in page


def test_refusing_gives_the_client_no_code(alice: User) -> None:
    answer = agree(alice, question(client_id()), allow="")
    assert answer["error"] == "access_denied" and "code" not in answer


@pytest.mark.parametrize(
    ("over", "error"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "invalid_request"),
        ({"resource": "https://elsewhere.example/mcp"}, "invalid_target"),
        ({"scope": "everything"}, "invalid_scope"),
        ({"response_type": "token"}, "unauthorized_client"),
    ],
)
def test_a_wrong_question_goes_back_as_an_error(
    alice: User, over: dict[str, str | None], error: str
) -> None:
    sent = flow.browser_of(alice).get(question(client_id(), **over))
    assert sent.status_code == 302
    location = sent["Location"].replace("#", "?")
    assert location.startswith(flow.REDIRECT) and flow.answered(location)["error"] == error


def test_plain_pkce_is_refused(alice: User) -> None:
    answer = agree(alice, question(client_id(), code_challenge_method="plain"))
    assert answer["error"] == "invalid_request"


@pytest.mark.parametrize(
    "over", [{"client_id": "nobody"}, {"redirect_uri": "https://evil.example/"}]
)
def test_an_unknown_client_or_address_leads_nowhere(alice: User, over: dict[str, str]) -> None:
    answer = flow.browser_of(alice).get(question(client_id(), **over))
    assert answer.status_code == 400 and "Location" not in answer


@pytest.mark.parametrize(
    "name", ["client_id", "redirect_uri", "scope", "state", "resource", "code_challenge"]
)
def test_a_question_with_broken_text_is_refused(alice: User, name: str) -> None:
    browser, url = flow.browser_of(alice), question(client_id(), **{name: "a\x00b"})
    assert browser.get(url).status_code == 400
    assert browser.post(url, {"allow": "Authorize", name: "a\x00b"}).status_code == 400
    assert browser.get(f"{question(client_id())}&{name}=a&{name}=%00").status_code == 400


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("client_id", ""),
            ("client_id", "nobody"),
            ("redirect_uri", ""),
            ("response_type", ""),
            ("reach", "all"),
        ),
        *(
            ("code_challenge", "x" * 129),
            ("nonce", "x" * 256),
            ("resource", "http://[::1/"),
            ("state", "a\x00b"),
        ),
        ("resource", "https://elsewhere.example/mcp"),
    ],
)
def test_a_forged_consent_is_refused(alice: User, name: str, value: str) -> None:
    browser, url = flow.browser_of(alice), question(client_id())
    fields = flow.hidden_fields(browser.get(url).content.decode()) | {"allow": "Authorize"}
    assert browser.post("/o/authorize/", fields | {name: value}).status_code == 400
    assert browser.post("/o/authorize/", fields).status_code == 302


def test_a_code_serves_once_and_only_with_its_verifier(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client))["code"]
    assert exchange(client, code, code_verifier="w" * 64).json()["error"] == "invalid_grant"
    code = agree(alice, question(client))["code"]
    assert exchange(client_id(), code).status_code in (400, 401)
    assert exchange(client, code).status_code == 200
    assert exchange(client, code).json()["error"] == "invalid_grant"


def test_a_token_for_another_server_is_worth_nothing_here(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client))["code"]
    assert (
        exchange(client, code, resource="https://elsewhere.example/mcp").json()["error"]
        == "invalid_target"
    )
    _, tokens = let_in(alice)
    assert reads(tokens["access_token"]) == 200
    for resource in (
        [],
        ["https://elsewhere.example/mcp"],
        [RESOURCE + ".evil.example"],
        [RESOURCE + "/x"],
    ):
        AccessToken.objects.filter(user=alice).update(resource=resource)
        assert reads(tokens["access_token"]) == 401


def test_a_client_that_names_no_resource_gets_a_token_for_this_server(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client, resource=None))["code"]
    exchange(client, code, resource=None)
    assert AccessToken.objects.get(user=alice).resource == [RESOURCE]


def test_passwords_and_client_secrets_buy_no_token(alice: User) -> None:
    for grant in (
        "password",
        "client_credentials",
        "implicit",
        "",
        "urn:ietf:params:oauth:grant-type:device_code",
    ):
        form = {"grant_type": grant, "username": "alice", "password": "x", "client_id": client_id()}
        answer = flow.program().post("/o/token/", form)
        assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")


def test_refreshing_gives_new_tokens_and_ends_the_old_ones(alice: User) -> None:
    client, first = let_in(alice)
    second = refresh(client, first["refresh_token"]).json()
    assert reads(second["access_token"]) == 200
    assert reads(first["access_token"]) == 401
    assert AccessToken.objects.get(user=alice).resource == [RESOURCE]
    assert (
        refresh(client, second["refresh_token"], scope="read write admin").json()["error"]
        == "invalid_scope"
    )
    assert refresh(client_id(), second["refresh_token"]).json()["error"] == "invalid_grant"


def test_a_client_that_lost_the_answer_may_refresh_again_for_a_while(alice: User) -> None:
    client, first = let_in(alice)
    lost = refresh(client, first["refresh_token"]).json()
    again = refresh(client, first["refresh_token"]).json()
    assert lost["access_token"] != again["access_token"]
    assert [reads(tokens["access_token"]) for tokens in (lost, again)] == [200, 200]
    assert refresh(client, again["refresh_token"]).status_code == 200


def test_a_refresh_token_used_again_later_ends_the_whole_family(alice: User) -> None:
    client, first = let_in(alice)
    second = refresh(client, first["refresh_token"]).json()
    RefreshToken.objects.filter(revoked__isnull=False).update(
        revoked=timezone.now() - timedelta(seconds=31)
    )
    assert refresh(client, first["refresh_token"]).json()["error"] == "invalid_grant"
    assert reads(second["access_token"]) == 401
    assert refresh(client, second["refresh_token"]).json()["error"] == "invalid_grant"


@pytest.mark.parametrize("which", ["access_token", "refresh_token"])
def test_revoking_either_token_ends_both(alice: User, which: str) -> None:
    client, tokens = let_in(alice)
    stranger = client_id()
    flow.program().post("/o/revoke_token/", {"token": tokens[which], "client_id": stranger})
    assert reads(tokens["access_token"]) == 200
    flow.program().post("/o/revoke_token/", {"token": tokens[which], "client_id": client})
    assert reads(tokens["access_token"]) == 401
    assert refresh(client, tokens["refresh_token"]).json()["error"] == "invalid_grant"


def test_expired_tokens_and_inactive_users_are_refused(alice: User) -> None:
    _, tokens = let_in(alice)
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert reads(tokens["access_token"]) == 401
    User.objects.filter(pk=alice.pk).update(is_active=True)
    AccessToken.objects.update(expires=timezone.now())
    assert reads(tokens["access_token"]) == 401


def test_the_registration_token_opens_nothing_but_the_registration(alice: User) -> None:
    answer = flow.register().json()
    assert recognise(answer["registration_access_token"]) is None


def test_the_consent_page_cannot_be_framed_forged_or_cached(alice: User) -> None:
    browser = flow.browser_of(alice, enforce_csrf_checks=True)
    page = browser.get(question(client_id()))
    assert (
        page["X-Frame-Options"] == "DENY"
        and "frame-ancestors 'none'" in page["Content-Security-Policy"]
    )
    assert "form-action 'self' http://127.0.0.1:7777;" in page["Content-Security-Policy"]
    assert page["Cache-Control"] == "no-store"
    fields = flow.hidden_fields(page.content.decode()) | {"allow": "Authorize"}
    fields.pop("csrfmiddlewaretoken")
    assert browser.post("/o/authorize/", fields).status_code == 403


def test_a_person_sees_and_ends_what_they_gave_and_nobody_elses(alice: User, bob: User) -> None:
    client, tokens = let_in(alice)
    browser, stranger = flow.browser_of(alice), flow.browser_of(bob)
    assert "End the access of Agent" in browser.get("/connect/").content.decode()
    assert "End the access of Agent" not in stranger.get("/connect/").content.decode()
    number = AccessToken.objects.get(user=alice).application_id
    for value in (str(number), "x", "9" * 30, ""):
        assert stranger.post("/connect/end/", {"client": value}).status_code == 302
    assert reads(tokens["access_token"]) == 200
    browser.post("/connect/end/", {"client": str(number)})
    assert reads(tokens["access_token"]) == 401
    assert refresh(client, tokens["refresh_token"]).json()["error"] == "invalid_grant"
    assert "End the access of Agent" not in browser.get("/connect/").content.decode()


def test_a_code_that_comes_again_ends_the_tokens_it_gave(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client))["code"]
    first = exchange(client, code).json()
    second = refresh(client, first["refresh_token"]).json()
    _, other = let_in(alice)
    assert reads(second["access_token"]) == 200
    replayed = exchange(client, code, code_verifier="w" * 64)
    assert (replayed.status_code, replayed.json()["error"]) == (400, "invalid_grant")
    assert reads(second["access_token"]) == 401
    assert refresh(client, second["refresh_token"]).json()["error"] == "invalid_grant"
    assert reads(other["access_token"]) == 200, "another grant of the same person goes on"


def test_another_client_cannot_end_tokens_with_a_code_it_has_seen(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client))["code"]
    tokens = exchange(client, code).json()
    assert exchange(client_id(), code).json()["error"] == "invalid_grant"
    assert reads(tokens["access_token"]) == 200


def test_a_token_for_the_site_as_a_whole_is_for_rest_and_not_for_mcp(alice: User) -> None:
    client = client_id()
    code = agree(alice, question(client, resource=settings.PUBLIC_URL))["code"]
    tokens = exchange(client, code, resource=settings.PUBLIC_URL).json()
    credential = recognise(tokens["access_token"])
    assert credential and not credential.is_for_mcp
    assert reads(tokens["access_token"]) == 200
