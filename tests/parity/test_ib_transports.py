"""Test that ib:// over stdio equals ib:// over HTTP: for two users with different rights, and for
one without any.
"""

import asyncio
import json
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.intelligencebank.library import CLIENT_ID, Library, running_library  # noqa: F401
from tests.intelligencebank.worlds import folder_named
from tests.mcp.clients import ERAS, connected, pipe

TOPS = {"alice": ["Marketing"], "bob": ["Legal"], "carol": [], "mallory": []}
# Signed with the time of their creation.
_MOMENTARY = {"next_cursor", "timestamp"}


def steady(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: steady(value) for name, value in answer.items() if name not in _MOMENTARY}
    return [steady(value) for value in answer] if isinstance(answer, list) else answer


async def read(client: Client, uri: str) -> Any:
    try:
        answer = await client.read_resource(uri)
    except MCPError as refused:
        return {
            "code": refused.error.code,
            "message": refused.error.message,
            "data": refused.error.data,
        }
    [contents] = answer.contents
    return contents.model_dump(mode="json") | {"text": steady(json.loads(contents.text))}


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    return answer.is_error, steady(answer.structured_content)


async def listed(client: Client) -> list[Any]:
    rows, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        rows += [
            row.model_dump(mode="json") for row in page.resources if row.uri.startswith("ib://")
        ]
        if (cursor := page.next_cursor) is None:
            return rows


def addresses(library: Library) -> list[str]:
    folders = [
        folder_named(library.tenant, name) for name in ("Resources", "Marketing", "Logos", "Legal")
    ]
    assets = [
        library.tenant.resource_row(number, _somebody(library), "", "")["_id"]
        for number in range(4)
    ]
    paths = [
        *(
            "folders/root",
            "folders/root/resources",
            "search?q=asset",
            "search?q=logo&limit=3",
            "search?q=nothinglike",
        ),
        *(f"folders/{folder}" for folder in folders),
        *(f"folders/{folder}/resources?limit=3" for folder in folders),
        *(f"{area}/{asset}" for asset in assets for area in ("resources", "resource")),
        *(
            f"folders/{'f' * 32}",
            f"resources/{'f' * 32}",
            "folders/ROOT",
            "search",
            "folders/root?colour=red",
        ),
    ]
    return [f"ib://{CLIENT_ID}/{path}" for path in paths] + ["ib://6M0B/folders/root"]


def _somebody(library: Library) -> Any:
    return next(iter(library.tenant.people.values()))


@pytest.mark.parametrize(
    ("person", "era"),
    [*(("alice", era) for era in ERAS), ("bob", "auto"), ("carol", "legacy"), ("mallory", "auto")],
)
def test_the_pipe_answers_what_http_answers(library: Library, person: str, era: str) -> None:
    token = library.tokens[person]

    async def scenario() -> None:
        async with (
            connected(library.site, token, era) as http,
            Client(pipe(library.site, token), mode=era) as piped,
        ):
            rows = await listed(http)
            assert rows == await listed(piped)
            assert [row["name"] for row in rows] == TOPS[person]
            for uri in addresses(library):
                assert await read(http, uri) == await read(piped, uri), uri
                for tool in ("get_resource", "backlog_get"):
                    argument = {"get_resource": "uri", "backlog_get": "id"}[tool]
                    assert await call(http, tool, **{argument: uri}) == await call(
                        piped, tool, **{argument: uri}
                    ), uri
            wanted = {"query": "asset", "types": ["ib_folder", "ib_resource"], "limit": 50}
            found = await call(http, "backlog_search", **wanted)
            assert found == await call(piped, "backlog_search", **wanted)
            assert (found[1]["total"] > 0) == bool(TOPS[person])

    asyncio.run(scenario())


def test_a_page_begun_over_http_goes_on_through_the_pipe(library: Library) -> None:
    uri, token = (
        f"ib://{CLIENT_ID}/folders/{folder_named(library.tenant, 'Logos')}/resources",
        library.tokens["alice"],
    )

    async def page(client: Client, query: str) -> Any:
        return json.loads((await client.read_resource(f"{uri}?{query}")).contents[0].text)

    async def scenario() -> None:
        async with (
            connected(library.site, token, "auto") as http,
            Client(pipe(library.site, token), mode="auto") as piped,
        ):
            first = await page(http, "limit=6")
            second = await page(piped, f"limit=6&cursor={first['next_cursor']}")
            ids = [one["id"] for one in first["results"] + second["results"]]
            assert len(ids) == len(set(ids)) == first["total"] and second["next_cursor"] is None

    asyncio.run(scenario())
