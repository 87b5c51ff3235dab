"""Test that a wrong prompt name or argument is reported to the caller as a client error, not a
server error.
"""

from typing import Any

import pytest

from tests.mcp.clients import modern
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

INVALID_PARAMS = -32602


@pytest.mark.parametrize(
    "params",
    [
        {"name": "no_such"},
        {"name": "plan_epic", "arguments": {}},
        {"name": "plan_epic", "arguments": {"epic_id": "EPIC-9999"}},
        {"name": "plan_epic", "arguments": {"epic_id": ".."}},
    ],
)
def test_a_mistake_in_a_prompt_is_the_callers(
    site: Site, tokens: Tokens, params: dict[str, Any]
) -> None:
    with site.client(tokens.alice) as http:
        assert modern(site, http, "prompts/get", params).json()["error"]["code"] == INVALID_PARAMS
