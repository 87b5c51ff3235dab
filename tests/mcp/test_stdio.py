"""Test `manage.py mcp_stdio`, in both eras."""

import asyncio
import subprocess
import sys

import pytest
from mcp import Client, MCPError
from mcp.types import ResourceListChangedNotification, ResourceUpdatedNotification

from tests.mcp.clients import ERAS, PATIENCE, pipe, title
from tests.mcp.conftest import Tokens
from tests.mcp.site import ROOT, Site


@pytest.mark.parametrize("era", ERAS)
def test_it_serves_the_user_of_the_token(site: Site, tokens: Tokens, era: str) -> None:
    async def scenario() -> None:
        async with Client(pipe(site, tokens.bob), mode=era) as client:
            assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
            answer = (await client.call_tool("fixture_whoami", {})).structured_content
            assert (answer["user"], answer["via"], answer["scope"]) == ("bob", "mcp", "read")

    asyncio.run(scenario())


def test_a_legacy_client_hears_of_changes_through_the_pipe(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Watched through a pipe'})}"

    async def scenario() -> None:
        heard: asyncio.Queue = asyncio.Queue()

        async def keep(message: object) -> None:
            heard.put_nowait(message)

        async with Client(pipe(site, tokens.bob), mode="legacy", message_handler=keep) as client:
            await client.subscribe_resource(uri)
            site.elsewhere.write(uri=uri, operation=title("Changed elsewhere"))
            told = await asyncio.wait_for(heard.get(), PATIENCE)
            assert isinstance(told, ResourceUpdatedNotification)
            assert (told.params.uri, told.params.meta["change"]["version"]) == (uri, 2)
            site.elsewhere.create(values={"title": "New"})
            assert isinstance(
                await asyncio.wait_for(heard.get(), PATIENCE), ResourceListChangedNotification
            )

    asyncio.run(scenario())


def test_a_modern_client_hears_of_changes_through_the_pipe(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Listened to through a pipe'})}"

    async def scenario() -> None:
        async with (
            Client(pipe(site, tokens.bob), mode="auto") as client,
            client.listen(resource_subscriptions=[uri]) as subscription,
        ):
            site.elsewhere.write(uri=uri, operation=title("Changed elsewhere"))
            assert (await asyncio.wait_for(anext(aiter(subscription)), PATIENCE)).uri == uri

    asyncio.run(scenario())


@pytest.mark.parametrize("era", ERAS)
def test_a_token_that_is_revoked_ends_the_service_of_an_open_pipe(site: Site, era: str) -> None:
    token = site.elsewhere.token(name=f"leaver-{era}", roles=["viewer"], scope="read")

    async def scenario() -> None:
        async with Client(pipe(site, token), mode=era) as client:
            await client.call_tool("fixture_whoami", {})
            site.elsewhere.revoke(name=f"leaver-{era}")
            with pytest.raises(MCPError, match="no longer valid"):
                async with asyncio.timeout(PATIENCE):
                    while True:  # a process caches its look-up for a moment
                        await client.call_tool("fixture_whoami", {})
                        await asyncio.sleep(0.1)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("token", "reason"), [("", "Set BACKLOG_TOKEN"), ("bl_" + "x" * 43, "unknown")]
)
def test_without_a_valid_token_it_says_why_and_ends(site: Site, token: str, reason: str) -> None:
    command = [sys.executable, "manage.py", "mcp_stdio"]
    environment = site.environment | {"BACKLOG_TOKEN": token}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, input="", capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert reason in ended.stderr
    assert ended.stdout == ""
