"""Test 100,000 random addresses and operations in a long run: only successes and the contract's
errors, never a 500.

Calls REST's views directly, without the middleware around them, which would take most of the time.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.signals import got_request_exception
from django.db import transaction
from django.test import RequestFactory
from django.urls import resolve
from rest_framework.test import force_authenticate

from resources_app.identity import tokens
from resources_app.identity.credentials import recognise
from tests.api.clients import ApiClient
from tests.fuzz import cases
from tests.fuzz.drawing import Draw
from tests.fuzz.test_addresses_and_operations import client  # noqa: F401

TOTAL = 500 if cases.IS_SEEDED else 100_000
# Rolled back together, so that a failure is reproduced by the seed of its part alone.
PART = 500
SEED = os.environ.get("FUZZ_SEED") or ("always" if cases.IS_SEEDED else os.urandom(8).hex())


class Views:
    """Call the views with an authenticated user."""

    def __init__(self, user: User) -> None:
        _, secret = tokens.create(user, "bulk", "write")
        self._credential = recognise(secret)
        self._make = RequestFactory()

    def get(self, path: str, query: dict[str, str]) -> Any:
        return self._answer(path, self._make.get(path, query))

    def post(self, path: str, body: bytes) -> Any:
        return self._answer(path, self._make.post(path, body, "application/json"))

    def _answer(self, path: str, request: Any) -> Any:
        force_authenticate(request, self._credential.user, self._credential)
        view = resolve(path)
        response = view.func(request, *view.args, **view.kwargs)
        response = response.render() if hasattr(response, "render") else response
        response.json = lambda: json.loads(response.content)  # as Django's own test client has it
        return response


class Case:
    """Read or write one address."""

    def __init__(self, draw: Draw, number: int) -> None:
        self.sent = draw.address() if number % 2 else draw.write()

    def ask(self, views: Views) -> Any:
        if isinstance(self.sent, str):
            return views.get(
                "/api/v1/resource/", {"uri": self.sent.encode(errors="replace").decode()}
            )
        return views.post("/api/v1/write/", json.dumps(self.sent).encode())


@pytest.fixture(autouse=True)
def raised() -> Iterator[None]:
    """Re-raise exceptions that would become a 500."""

    def reraise(**_: Any) -> None:
        raise  # the receiver is called while the exception is handled

    got_request_exception.connect(reraise)
    yield
    got_request_exception.disconnect(reraise)


@pytest.mark.parametrize("seed", [SEED])
def test_addresses_and_operations_by_the_hundred_thousand(
    client: ApiClient,
    alice: User,
    seed: str,
) -> None:
    views = Views(alice)
    for part in range(TOTAL // PART):
        draw = Draw(f"{seed}:{part}")
        with transaction.atomic():
            for number in range(PART):
                case = Case(draw, number)
                try:
                    cases.check(lambda case=case: case.ask(views), case.sent)
                except Exception as error:
                    error.add_note(f"FUZZ_SEED={seed}, part {part}, case {number}: {case.sent!r}")
                    raise
            transaction.set_rollback(True)
