"""Test the tools over the wire with the official client."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS

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
# The whole list, in o200k tokens.
MAX_LIST_TOKENS = 3000


def run(site: Site, token: str, scenario: Scenario, era: str = "auto") -> None:
    async def main() -> None:
        async with connected(site, token, era) as client:
            await scenario(client)

    asyncio.run(main())


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    [block] = result.content
    assert json.loads(block.text) == result.structured_content and "\n" not in block.text
    return result.structured_content


async def refused(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert result.is_error
    error = result.structured_content["error"]
    assert json.loads(result.content[0].text) == result.structured_content
    assert set(error) == {"code", "message", "details", "suggestion", "retryable"}
    return error


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_has_title_annotations_and_a_lean_schema(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario(client: Client) -> None:
        tools = [
            tool
            for tool in (await client.list_tools()).tools
            if not tool.name.startswith("fixture")
        ]
        assert {tool.name for tool in tools} >= TOOLS
        for tool in tools:
            assert (
                tool.title
                and tool.annotations
                and tool.output_schema
                and len(tool.description) < 1200
            )
            assert tool.input_schema["additionalProperties"] is False
        whole = json.dumps(
            [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
        )
        assert count_tokens(whole) <= MAX_LIST_TOKENS

    run(site, tokens.alice, scenario, era)


@pytest.mark.parametrize("era", ERAS)
def test_an_agent_creates_edits_a_line_and_reads_back(site: Site, tokens: Tokens, era: str) -> None:
    async def scenario(client: Client) -> None:
        made = await call(
            client, "backlog_create", title="Login fails", description="one\ntwo\n", labels=["bug"]
        )
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
        listed = await call(
            client, "backlog_list", status=["done", "blocked"], filter='title~"login"', limit=200
        )
        assert made["id"] in [row["id"] for row in listed["results"]]
        assert (await call(client, "backlog_delete", id=made["id"]))["archived"] is True

    run(site, tokens.alice, scenario, era)


def test_objects_sent_as_json_text_are_understood_and_texts_stay_texts(
    site: Site, tokens: Tokens
) -> None:
    async def scenario(client: Client) -> None:
        made = await call(
            client, "backlog_create", title='["not", "a", "list"]', labels='["a", "b"]'
        )
        assert (made["title"], made["labels"]) == ('["not", "a", "list"]', ["a", "b"])
        operation = json.dumps({"type": "append", "content": '{"x": 1}'})
        uri = f"mcp://backlog/tasks/{made['id']}/description"
        await call(client, "write_resource", uri=uri, operation=operation)
        assert (await call(client, "backlog_get", id=uri))["results"][0]["contents"] == '{"x": 1}'
        assert (
            len((await call(client, "backlog_get", id=json.dumps([made["id"], uri])))["results"])
            == 2
        )
        entry = {"uri": uri, "operation": json.dumps({"type": "set", "value": "new"})}
        for operations in (json.dumps([entry]), [json.dumps(entry)], [entry]):
            assert (await call(client, "write_resource_batch", operations=operations))[
                "failed"
            ] == 0

    run(site, tokens.alice, scenario)


def test_what_is_missing_is_an_error_unless_something_else_was_found(
    site: Site, tokens: Tokens
) -> None:
    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="There")
        assert (await refused(client, "backlog_get", id="TASK-9999"))["code"] == "not_found"
        assert (await refused(client, "backlog_get", id=["TASK-9998", "TASK-9999"]))[
            "code"
        ] == "not_found"
        mixed = (await call(client, "backlog_get", id=[made["id"], "TASK-9999"]))["results"]
        assert mixed[0]["contents"]["title"] == "There" and mixed[1]["error"]["code"] == "not_found"

    run(site, tokens.alice, scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_that_does_not_exist_is_no_tools_answer(
    site: Site, tokens: Tokens, era: str
) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("backlog_destroy", {})
        assert caught.value.error.code == INVALID_PARAMS and "backlog_get" in str(
            caught.value.error.data
        )

    run(site, tokens.alice, scenario, era)


def test_lists_take_the_whole_query_language(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        epic = (await call(client, "backlog_create", type="epic", title="Listing"))["id"]
        for title in ("Alpha walrus", "Beta walrus", "Gamma"):
            await call(client, "backlog_create", title=title, epic_id=epic, evidence=["seen"])

        async def listed(**query: Any) -> list[str]:
            page = await call(
                client, "backlog_list", epic_id=epic, sort="title", order="asc", **query
            )
            return [row["title"] for row in page["results"]]

        assert await listed(search="walrus") == ["Alpha walrus", "Beta walrus"]
        assert await listed(offset=1, limit=1) == ["Beta walrus"]
        assert await listed(filter='title~"amma"') == ["Gamma"]
        counted = await call(
            client, "backlog_list", epic_id=epic, aggregate="count", group_by="status"
        )
        assert counted["open"] == 3
        assert (await call(client, "backlog_list", epic_id=epic, aggregate="count")) == {"count": 3}

    run(site, tokens.alice, scenario)


def test_a_long_batch_says_how_far_it_is(site: Site, tokens: Tokens) -> None:
    told: list[tuple[float, float | None]] = []

    async def note(progress: float, total: float | None, _message: str | None) -> None:
        told.append((progress, total))

    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="Batch")
        entry = {"uri": f"mcp://backlog/tasks/{made['id']}/evidence"}
        append = {"type": "array_append", "value": "x"}
        operations = [entry | {"operation": append}] * 60
        await client.call_tool(
            "write_resource_batch", {"operations": operations}, progress_callback=note
        )
        assert told == [(25, 60), (50, 60)]

    run(site, tokens.alice, scenario)


def test_mistakes_a_model_can_mend_are_answers(site: Site, tokens: Tokens) -> None:
    async def scenario(client: Client) -> None:
        unknown = await refused(client, "backlog_list", colour="red")
        assert (
            unknown["details"]["field"] == "colour"
            and "status" in unknown["details"]["allowed_values"]
        )
        assert (await refused(client, "backlog_create"))["code"] == "validation_failed"
        wrong = (await refused(client, "backlog_create", title="x", status="no"))["details"]
        assert (wrong["field"], wrong["value"]) == ("status", "no") and "blocked" in wrong[
            "allowed_values"
        ]
        assert (await refused(client, "backlog_update", id="TASK-9999", title="x"))[
            "code"
        ] == "not_found"
        made = await call(client, "backlog_create", title="Conflict", description="first")
        uri = f"mcp://backlog/tasks/{made['id']}/description"
        stale = (await call(client, "backlog_get", id=uri))["results"][0]["etag"]
        await call(
            client,
            "write_resource",
            uri=uri,
            operation={"type": "append", "content": " second"},
            etag=stale,
        )
        append = {"type": "append", "content": "!"}
        conflict = await refused(client, "write_resource", uri=uri, operation=append, etag=stale)
        assert (
            conflict["code"] == "conflict"
            and "second" in conflict["details"]["diff"]
            and conflict["suggestion"]
        )

    run(site, tokens.alice, scenario)


def test_a_long_text_comes_in_parts_and_says_so(site: Site, tokens: Tokens) -> None:
    text = "".join(f"line {number}\n" for number in range(2000))

    async def scenario(client: Client) -> None:
        made = await call(client, "backlog_create", title="Long", description=text)
        parts, cursor = [], None
        while True:
            page = await call(
                client,
                "backlog_get",
                id=[made["id"], "auth://status"],
                max_tokens=1000,
                cursor=cursor,
            )
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
        operations = [
            {"uri": uri, "operation": {"type": "array_append", "value": word}}
            for word in ("a", "b")
        ]
        key = f"key-{made['id']}"
        first = await call(
            client, "write_resource_batch", operations=operations, idempotency_key=key
        )
        again = await call(
            client, "write_resource_batch", operations=operations, idempotency_key=key
        )
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

        written = ask(
            "resources/write",
            uri=f"{uri}/description",
            operation={"type": "append", "content": "b\n"},
        )
        assert "+b" in written["result"]["diff"]
        batch = [{"uri": f"{uri}/status", "operation": {"type": "set", "value": "done"}}]
        assert ask("resources/write_batch", operations=batch)["result"]["failed"] == 0
        assert ask("resources/schema", uri=uri)["result"]["properties"]["title"]["maxLength"] == 200
        versions = ask("resources/list_versions", uri=uri)["result"]["results"]
        assert [entry["version"] for entry in versions] == [3, 2, 1]
        refusal = ask(
            "resources/write", uri=f"{uri}/status", operation={"type": "set", "value": "no"}
        )
        assert refusal["error"]["data"]["code"] == "validation_failed"
        as_text = json.dumps({"type": "append", "content": "c\n"})
        assert (
            "+c"
            in ask("resources/write", uri=f"{uri}/description", operation=as_text)["result"]["diff"]
        )
        for method in (
            "resources/write",
            "resources/write_batch",
            "resources/schema",
            "resources/list_versions",
        ):
            unknown = ask(method, uri=uri, colour="red")["error"]
            assert (
                unknown["code"] == INVALID_PARAMS
                and unknown["data"]["details"]["field"] == "colour"
            ), method
