"""Test OAuth's endpoints with one or two parameters that no client would send: a success or an
error, never a 500.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from tests.accounts import flow
from tests.fuzz import cases
from tests.fuzz.drawing import Draw
from tests.fuzz.test_in_bulk import SEED

PART = 100
TOTAL = max(PART, cases.CASES // 20)
QUESTIONS = [
    *(
        "response_type",
        "client_id",
        "redirect_uri",
        "state",
        "scope",
        "code_challenge",
        "code_challenge_method",
    ),
    *("resource", "nonce", "claims", "prompt", "max_age", "request", "reach", "allow"),
]
FORMS = [
    *(
        "grant_type",
        "code",
        "client_id",
        "redirect_uri",
        "code_verifier",
        "resource",
        "refresh_token",
        "scope",
    ),
    *("client_secret", "username", "password", "token", "token_type_hint", "device_code"),
]
METADATA = [
    *flow.METADATA,
    "grant_types",
    "response_types",
    "scope",
    "jwks",
    "jwks_uri",
    "contacts",
    "logo_uri",
    "x",
]
GRANTS = [
    *("authorization_code", "refresh_token", "password", "client_credentials", "implicit"),
    *(
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
    ),
]


@dataclass
class Doors:
    """Hold a signed-in user and a registered client."""

    browser: Client
    registered: Any
    fields: dict[str, str]
    draw: Draw

    @property
    def client(self) -> str:
        return str(self.registered.json()["client_id"])

    def ask(self) -> Any:
        doors: list[Callable[[], Any]] = [self._question, self._consent, self._token, self._revoke]
        return self.draw.pick([*doors, self._register, self._replace])()

    def _bent(self, names: list[str]) -> dict[str, str]:
        return {
            self.draw.pick(names): self.draw.form_value() for _ in range(self.draw.pick([1, 1, 2]))
        }

    def _question(self) -> Any:
        return self.browser.get(flow.question(self.client, **self._bent(QUESTIONS)))

    def _consent(self) -> Any:
        return self.browser.post(
            "/o/authorize/", self.fields | {"allow": "Authorize"} | self._bent(QUESTIONS)
        )

    def _token(self) -> Any:
        form = {
            "grant_type": self.draw.pick(GRANTS),
            "client_id": self.client,
            "code": "x",
            "refresh_token": "br_x",
        }
        return flow.program().post("/o/token/", form | self._bent(FORMS))

    def _revoke(self) -> Any:
        return flow.program().post(
            "/o/revoke_token/", {"token": "bo_x", "client_id": self.client} | self._bent(FORMS)
        )

    def _register(self) -> Any:
        return flow.register(**{self.draw.pick(METADATA): self.draw.value(2)})

    def _replace(self) -> Any:
        return flow.replace(
            self.registered, flow.METADATA | {self.draw.pick(METADATA): self.draw.value(2)}
        )


@pytest.mark.parametrize("seed", [SEED])
def test_any_step_is_taken_or_refused(alice: User, seed: str) -> None:
    browser, registered = flow.browser_of(alice), flow.register()
    page = browser.get(flow.question(registered.json()["client_id"])).content.decode()
    for part in range(TOTAL // PART):
        doors = Doors(browser, registered, flow.hidden_fields(page), Draw(f"{seed}:{part}"))
        with transaction.atomic():
            for number in range(PART):
                try:
                    answer = cases.in_time(doors.ask)
                except Exception as error:
                    error.add_note(f"FUZZ_SEED={seed}, part {part}, case {number}")
                    raise
                assert answer.status_code < 500
            transaction.set_rollback(True)
