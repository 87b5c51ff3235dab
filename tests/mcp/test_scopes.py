"""Test that tools outside a scope are not listed, and are rejected when called anyway."""

import asyncio

import pytest

from tests.mcp.clients import ERAS, call, connected, session
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

READING = {"backlog_search", "backlog_context", "backlog_list", "backlog_get", "get_resource"}
WRITING = {
    "backlog_create",
    "backlog_update",
    "backlog_delete",
    "write_resource",
    "write_resource_batch",
}
FOR_ADMINS = {"admin://users", "admin://roles", "admin://config/oauth", "admin://config/sync"}


async def listed(site: Site, token: str, era: str) -> tuple[set[str], set[str]]:
    async with connected(site, token, era) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        resources = {resource.uri for resource in (await client.list_resources()).resources}
        return {name for name in tools if not name.startswith("fixture")}, resources


@pytest.mark.parametrize("era", ERAS)
def test_tools_and_resources_beyond_the_scope_are_not_listed(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario() -> None:
        reader = site.elsewhere.token(
            name="alice", roles=["contributor"], scope="read", label=f"reads {era}"
        )
        modest = site.elsewhere.token(
            name="carol", roles=["admin"], scope="write", label=f"writes {era}"
        )
        for token in (tokens.bob, reader):
            tools, resources = await listed(site, token, era)
            assert tools == READING
            assert not resources & FOR_ADMINS
        for token in (tokens.alice, modest):
            tools, resources = await listed(site, token, era)
            assert tools == READING | WRITING
            assert not resources & FOR_ADMINS
        tools, resources = await listed(site, tokens.carol, era)
        assert tools == READING | WRITING
        assert resources >= FOR_ADMINS

    asyncio.run(scenario())


def test_a_tool_that_is_not_listed_is_refused_when_it_is_called(site: Site, tokens: Tokens) -> None:
    with session(site, tokens.bob) as http:
        assert (
            call(site, http, "backlog_create", title="No")["error"]["code"] == "permission_denied"
        )
        read = call(site, http, "get_resource", uri="admin://config/oauth")
        assert read["error"] == "Unauthorized"
    with session(site, tokens.carol) as http:
        config = call(site, http, "get_resource", uri="admin://config/oauth")["data"]
        assert config["resource"] == site.mcp and config["registration"] is True
