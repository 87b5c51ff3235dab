"""Test our OpenAPI description with Schemathesis: all valid requests get a success or an error,
never a 500.
"""

import json
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from drf_spectacular.generators import SchemaGenerator
from hypothesis import given

from resources_app.writing import stored_files
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_epic, make_task
from tests.fuzz.cases import check, fuzz

SCHEMA = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
# Existing ids among the random ones, so that more than "not found" is tried.
KNOWN = {"id": ["TASK-0001", "EPIC-0001", "1"], "path": ["docs/a.md", "docs"]}


@pytest.fixture
def client(carol: User) -> ApiClient:
    make_epic(title="Epic")
    make_task(title="First", description="one\ntwo\n", evidence=["a"])
    stored_files.create_resource(as_actor(carol), "resources/docs/a.md", "# A\n")
    return ApiClient(carol)


def test_the_schema_describes_the_api() -> None:
    assert len(OPERATIONS) >= 35


def send(client: ApiClient, case: Any) -> Any:
    path = case.operation.path
    for name, value in (case.path_parameters or {}).items():
        known = KNOWN.get(name, [])
        length = len(str(value))
        chosen = known[length // 2 % len(known)] if known and length % 2 else value
        path = path.replace(f"{{{name}}}", str(chosen) or "x")
    headers = {str(name): str(value) for name, value in (case.headers or {}).items()}
    sent = {
        name: value for name, value in headers.items() if value.isascii() and value.isprintable()
    }
    options: dict[str, Any] = {"headers": client._headers | sent}
    options["query_params"] = case.query or {}
    if case.method.upper() in {"POST", "PUT", "PATCH"}:
        options |= {"data": body_of(case), "content_type": "application/json"}
    return client._client.generic(case.method.upper(), path.replace("?", "%3F"), **options)


def body_of(case: Any) -> bytes:
    if isinstance(case.body, bytes):
        return case.body
    try:
        return json.dumps(case.body).encode()
    except TypeError:  # there is no body
        return b""


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_whatever_the_schema_allows_is_answered_or_refused(
    client: ApiClient, operation: Any
) -> None:
    @fuzz(0.2 / len(OPERATIONS))
    @given(case=operation.as_strategy())
    def holds(case: Any) -> None:
        check(
            lambda: send(client, case), (case.path_parameters, case.query, case.headers, case.body)
        )

    holds()
