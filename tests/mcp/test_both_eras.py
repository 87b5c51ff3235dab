"""Test what the official client can do, in both eras, against two web processes."""

import asyncio

import pytest
from mcp.types import ResourceUpdatedNotification

from tests.mcp.clients import ERAS, connected, title
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

PATIENCE = 20


@pytest.mark.parametrize("era", ERAS)
def test_a_client_connects_lists_tools_and_calls_one_as_its_user(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.alice, era) as client:
            assert client.server_info.name == "backlog"
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert listed["fixture_whoami"].title == "Who am I"
            assert listed["fixture_whoami"].annotations.read_only_hint is True
            answer = (await client.call_tool("fixture_whoami", {})).structured_content
            assert answer["user"] == "alice"
            assert (answer["via"], answer["agent"], answer["scope"]) == (
                "mcp",
                "agent-of-the-test",
                "write",
            )
            assert len(answer["request_id"]) == 32

    asyncio.run(scenario())


@pytest.mark.parametrize("era", ERAS)
def test_only_what_can_change_is_announced_as_changing(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.alice, era) as client:
            announced = client.server_capabilities
            assert announced.resources.subscribe is True
            assert announced.resources.list_changed is True
            assert not announced.tools.list_changed
            assert not announced.prompts.list_changed

    asyncio.run(scenario())


def test_every_process_serves_a_session_of_the_handshake_era(site: Site, tokens: Tokens) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.alice, "legacy") as client:
            processes: set[int] = set()
            for _ in range(
                50
            ):  # the system picks the process that accepts; before long the other one does
                calls = [client.call_tool("fixture_whoami", {}) for _ in range(40)]
                answers = [result.structured_content for result in await asyncio.gather(*calls)]
                assert {answer["user"] for answer in answers} == {"alice"}
                processes |= {answer["process"] for answer in answers}
                if len(processes) == 2:
                    return
            raise AssertionError("only one process ever answered")

    asyncio.run(scenario())


def test_a_legacy_client_hears_of_a_write_in_another_process(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Watched by the handshake era"})
    uri = f"mcp://backlog/tasks/{ref}"

    async def scenario() -> None:
        heard: asyncio.Queue = asyncio.Queue()

        async def keep(message: object) -> None:
            if isinstance(message, ResourceUpdatedNotification):
                heard.put_nowait(message.params)

        async with connected(site, tokens.bob, "legacy", message_handler=keep) as client:
            await client.subscribe_resource(uri)
            site.elsewhere.write(uri=uri, operation=title("Changed elsewhere"))
            told = await asyncio.wait_for(heard.get(), PATIENCE)
            assert told.uri == uri
            assert told.meta["author"] == "carol"
            assert told.meta["change"]["fields"] == ["title"]
            await client.unsubscribe_resource(uri)
            site.elsewhere.write(uri=uri, operation=title("Nobody watches any more"))
            await client.subscribe_resource(uri)
            site.elsewhere.write(uri=uri, operation=title("Watched again"))
            assert (await asyncio.wait_for(heard.get(), PATIENCE)).meta["change"]["version"] == 4

    asyncio.run(scenario())


def test_a_modern_client_hears_of_a_write_in_another_process(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "Watched by the newer era"})
    uri = f"mcp://backlog/tasks/{ref}"

    async def scenario() -> None:
        async with (
            connected(site, tokens.bob, "auto") as client,
            client.listen(
                resource_subscriptions=[uri], resources_list_changed=True
            ) as subscription,
        ):
            assert subscription.honored.resource_subscriptions == [uri]
            site.elsewhere.write(uri=uri, operation=title("Changed elsewhere"))
            event = await asyncio.wait_for(anext(aiter(subscription)), PATIENCE)
            assert event.uri == uri
            site.elsewhere.create(values={"title": "Something new"})
            assert (
                type(await asyncio.wait_for(anext(aiter(subscription)), PATIENCE)).__name__
                == "ResourcesListChanged"
            )

    asyncio.run(scenario())


@pytest.mark.parametrize("era", ERAS)
def test_progress_reported_from_a_database_thread_arrives_before_the_answer(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario() -> None:
        reported = []

        async def keep(progress: float, total: float | None, message: str | None) -> None:
            reported.append((progress, total, message))

        async with connected(site, tokens.alice, era) as client:
            result = await client.call_tool("fixture_progress", {}, progress_callback=keep)
            assert result.content[0].text == "done"
            assert reported == [(1, 2, "step 1"), (2, 2, "step 2")]

    asyncio.run(scenario())


def test_a_tool_can_ask_the_user_of_a_legacy_client(site: Site, tokens: Tokens) -> None:
    from mcp.types import ElicitResult

    async def answer(_context: object, _params: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"colour": "green"})

    async def scenario() -> None:
        async with connected(site, tokens.alice, "legacy", elicitation_callback=answer) as client:
            results = await asyncio.gather(*[client.call_tool("fixture_ask", {}) for _ in range(8)])
            texts = [result.content[0].text.split() for result in results]
            assert {colour for _, colour in texts} == {"green"}
            assert len({process for process, _ in texts}) == 2

    asyncio.run(scenario())
