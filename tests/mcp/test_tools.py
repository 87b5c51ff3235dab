"""The tools, over the wire with the official client."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client

from bench.tokens import count_tokens
from tests.mcp.clients import ERAS, connected
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

Scenario = Callable[[Client], Awaitable[None]]
TOOLS = {
    "backlog_search",
    "backlog_context",
    "backlog_list",
    "backlog_get",
    "backlog_create",
    "backlog_update",
    "backlog_delete",
    "write_resource",
    "write_resource_batch",
    "get_resource",
}
# The whole list, in o200k.
MAX_LIST_TOKENS = 3000


def run(site: Site, token: str, scenario: Scenario, era: str = "auto") -> None:
    async def main() -> None:
        async with connected(site, token, era) as client:
            await scenario(client)

    asyncio.run(main())


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    error = result.structured_content["error"]
    assert set(error) == {"code", "message", "details", "suggestion", "retryable"}
    return error


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_has_title_annotations_and_a_lean_schema(site: Site, tokens: Tokens, era: str) -> None:
    async def scenario(client: Client) -> None:
        tools = [tool for tool in (await client.list_tools()).tools if not tool.name.startswith("fixture")]
        assert {tool.name for tool in tools} >= TOOLS
        for tool in tools:
            assert tool.title and tool.annotations and tool.output_schema and len(tool.description) < 1200
            assert tool.input_schema["additionalProperties"] is False
        whole = json.dumps([tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools])
        assert count_tokens(whole) <= MAX_LIST_TOKENS

    run(site, tokens.alice, scenario, era)


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_creates_edits_a_line_and_reads_back(site: Site, tokens: Tokens, era: str) -> None:
    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="Login fails", description="one\ntwo\n", labels=["bug"])
        uri = f"mcp://backlog/tasks/{made['id']}/description"
        operation = {"type": "str_replace", "old_str": "two", "new_str": "2 $1"}
        edited = await call(client, "write_resource", uri=uri, operation=operation)
        assert "+2 $1" in edited["diff"]
        got = await call(client, "backlog_get", id=[made["id"], uri])
        assert got["results"][0]["contents"]["description"] == "one\n2 $1\n"
        assert got["results"][1]["contents"] == "one\n2 $1\n"
        assert got["results"][1]["etag"] == edited["etag"]
        updated = await call(client, "backlog_update", id=made["id"], status="done", labels=[])
        assert updated["diff"]["labels"] == {"before": ["bug"], "after": []}
        listed = await call(client, "backlog_list", status=["done", "blocked"], filter='title~"login"', limit=200)
        assert made["id"] in [row["id"] for row in listed["results"]]
        assert (await call(client, "backlog_delete", id=made["id"]))["archived"] is True

    run(site, tokens.alice, scenario, era)


def test_objects_sent_as_json_text_are_understood_and_texts_stay_texts(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title='["not", "a", "list"]', labels='["a", "b"]')
        assert (made["title"], made["labels"]) == ('["not", "a", "list"]', ["a", "b"])
        operation = json.dumps({"type": "append", "content": '{"x": 1}'})
        uri = f"mcp://backlog/tasks/{made['id']}/description"
        await call(client, "write_resource", uri=uri, operation=operation)
        assert (await call(client, "backlog_get", id=uri))["results"][0]["contents"] == '{"x": 1}'

    run(site, tokens.alice, scenario)


def test_mistakes_a_model_can_mend_are_answers(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        unknown = await refused(client, "backlog_list", colour="red")
        assert unknown["details"]["field"] == "colour" and "status" in unknown["details"]["allowed_values"]
        assert (await refused(client, "backlog_create"))["code"] == "validation_failed"
        assert (await refused(client, "backlog_update", id="TASK-9999", title="x"))["code"] == "not_found"
        made = await call(client, "backlog_create", title="Conflict", description="first")
        uri = f"mcp://backlog/tasks/{made['id']}/description"
        stale = (await call(client, "backlog_get", id=uri))["results"][0]["etag"]
        await call(client, "write_resource", uri=uri, operation={"type": "append", "content": " second"}, etag=stale)
        append = {"type": "append", "content": "!"}
        conflict = await refused(client, "write_resource", uri=uri, operation=append, etag=stale)
        assert conflict["code"] == "conflict" and "second" in conflict["details"]["diff"] and conflict["suggestion"]

    run(site, tokens.alice, scenario)


def test_a_long_text_comes_in_parts_and_says_so(site: Site, tokens: Tokens) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))

    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="Long", description=text)
        parts, cursor = [], None
        while True:
            page = await call(client, "backlog_get", id=[made["id"], "auth://status"], max_tokens=1000, cursor=cursor)
            assert len(json.dumps(page)) < 1000 * 4
            for result in page["results"]:
                if result["uri"].endswith(made["id"]):
                    parts.append(result["contents"]["description"])
                else:
                    assert result["contents"]["username"] == "alice"
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert "".join(parts) == text

    run(site, tokens.alice, scenario)


def test_a_batch_is_repeated_safely(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="Batch")
        uri = f"mcp://backlog/tasks/{made['id']}/evidence"
        operations = [{"uri": uri, "operation": {"type": "array_append", "value": word}} for word in ("a", "b")]
        key = f"key-{made['id']}"
        first = await call(client, "write_resource_batch", operations=operations, idempotency_key=key)
        again = await call(client, "write_resource_batch", operations=operations, idempotency_key=key)
        assert first == again
        assert (await call(client, "backlog_get", id=uri))["results"][0]["contents"] == ["a", "b"]

    run(site, tokens.alice, scenario)


@pytest.mark.parametrize("era", ERAS)
def test_the_server_introduces_itself_in_few_words(site: Site, tokens: Tokens, era: str) -> None:
    async def scenario(client: Client) -> None:
        assert "write_resource" in client.instructions and len(client.instructions) < 600
        if era == "auto":  # the handshake's capabilities have no place for extensions
            announced = client.server_capabilities.extensions["io.backlog/writable-resources"]
            assert "resources/write" in announced["methods"]

    run(site, tokens.bob, scenario, era)


def test_a_reader_is_told_that_it_only_reads(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        assert (await refused(client, "backlog_create", title="x"))["code"] == "permission_denied"
        assert (await call(client, "get_resource", uri="auth://status"))["data"]["role"] == "viewer"

    run(site, tokens.bob, scenario)


def test_the_extension_methods_do_what_the_tools_do(site: Site, tokens: Tokens) -> None:
    from tests.mcp.clients import request, session

    ref = site.elsewhere.create(values={"title": "By method", "description": "a\n"})
    uri = f"mcp://backlog/tasks/{ref}"
    with session(site, tokens.alice) as http:

        def ask(method: str, **params: Any) -> dict[str, Any]:
            return http.post(site.mcp, json=request(method, params)).json()

        written = ask("resources/write", uri=f"{uri}/description", operation={"type": "append", "content": "b\n"})
        assert "+b" in written["result"]["diff"]
        batch = [{"uri": f"{uri}/status", "operation": {"type": "set", "value": "done"}}]
        assert ask("resources/write_batch", operations=batch)["result"]["failed"] == 0
        assert ask("resources/schema", uri=uri)["result"]["properties"]["title"]["maxLength"] == 200
        versions = ask("resources/list_versions", uri=uri)["result"]["results"]
        assert [entry["version"] for entry in versions] == [3, 2, 1]
        refusal = ask("resources/write", uri=f"{uri}/status", operation={"type": "set", "value": "no"})
        assert refusal["error"]["data"]["code"] == "validation_failed"
