"""Test that `get_resource`, `resources/read` and REST return the same for every registered address
and user, over HTTP and stdio.
"""

import asyncio
import base64
import json
from typing import Any

import pytest
from mcp import Client, MCPError

from resources_app.fields.declarations import FIELDS
from resources_app.reading.registry import REGISTRY
from resources_app.vocabulary import Kind
from tests.mcp.clients import ERAS, connected, pipe
from tests.mcp.conftest import Tokens, site, tokens  # noqa: F401
from tests.mcp.site import Site

PATTERNS = [entry.pattern for entry in REGISTRY]
ERRORS = {
    "InvalidURI",
    "MissingTemplateVariable",
    "InvalidTemplateVariable",
    "Unauthorized",
    "NotFound",
}
TENANT, IB_ID = "Parity1", "ab" * 16
VALUES = {
    "clientid": TENANT,
    "query": "logo",
    "id": "TASK-0001",
    "field": "evidence",
    "index": "0",
    "number": "1",
    "template": "bug",
    "path": "docs/a.md",
}


MISTAKEN_PROMPTS = (
    ("plan_epic", {}),
    ("plan_epic", {"epic_id": "EPIC-9999"}),
    ("triage", {"limit": "many"}),
    ("triage", {"colour": "red"}),
    ("nothing", {}),
)


def addresses() -> list[str]:
    filled = []
    for entry in REGISTRY:
        uri = entry.pattern.replace("{id}", IB_ID) if entry.scheme == "ib" else entry.pattern
        if entry.category == "archive":
            uri = uri.replace("{path}", "docs/old.md")
        for name, value in VALUES.items():
            uri = uri.replace(f"{{{name}}}", value)
        uri = uri.replace("epics/TASK-", "epics/EPIC-").replace(
            "archive/TASK-0001", "archive/TASK-0002"
        )
        filled.append(uri.replace("archive/TASK-0002/tasks", "archive/EPIC-0002/tasks"))
    return [uri for uri in filled if not uri.startswith("file:")]


def fields() -> list[str]:
    items = (
        ("tasks/TASK-0001", "task"),
        ("epics/EPIC-0001", "epic"),
        ("archive/TASK-0002", "task"),
    )
    names = [
        f"mcp://backlog/{item}/{field}" for item, kind in items for field in FIELDS[Kind(kind)]
    ]
    return [f"{uri}{version}" for uri in names for version in ("", "@v1")]


@pytest.fixture(scope="module", autouse=True)
def things(site: Site, tokens: Tokens) -> None:
    actor = "alice"
    site.elsewhere.create(kind="epic", values={"title": "Epic", "evidence": ["e"]}, by=actor)
    site.elsewhere.create(
        values={"title": "First", "evidence": ["e"], "epic_id": "EPIC-0001"}, by=actor
    )
    site.elsewhere.create(values={"title": "Second", "evidence": ["e"]}, by=actor)
    site.elsewhere.mirror(
        client_id=TENANT, folder=IB_ID, resource=IB_ID, people=["alice", "bob", "carol"]
    )
    site.elsewhere.create(kind="epic", values={"title": "Over"}, by=actor)
    for uri in ("mcp://backlog/tasks/TASK-0002", "mcp://backlog/epics/EPIC-0002"):
        site.elsewhere.archive(uri=uri, by=actor)
    with site.client(tokens.alice) as http:
        http.post(
            f"{site.url}/api/v1/comments/", json={"item_id": "TASK-0001", "body": "hm"}
        ).raise_for_status()
        http.post(
            f"{site.url}/api/v1/resources/", json={"path": "docs/a.md", "content": "# A"}
        ).raise_for_status()
        http.post(
            f"{site.url}/api/v1/artifacts/", json={"path": "docs/a.md", "content": "x"}
        ).raise_for_status()
        for area in ("resources", "artifacts"):
            old = {"path": "docs/old.md", "content": "# Old"}
            http.post(f"{site.url}/api/v1/{area}/", json=old).raise_for_status()
            http.delete(f"{site.url}/api/v1/{area}/docs/old.md").raise_for_status()


async def by_resource(client: Client, uri: str) -> Any:
    try:
        [contents] = (await client.read_resource(uri)).contents
    except MCPError:
        return None
    if contents.mime_type == "application/json":
        return json.loads(contents.text)
    return contents.text if hasattr(contents, "text") else base64.b64decode(contents.blob)


async def by_tool(client: Client, uri: str) -> Any:
    answer = (await client.call_tool("get_resource", {"uri": uri})).structured_content
    if answer["success"]:
        assert set(answer) == {"success", "uri", "resource_name", "data", "timestamp", "mime_type"}
        assert answer["uri"] == uri
        return answer["data"]
    assert answer["error"] in ERRORS and answer["suggested_actions"]
    return None


def by_rest(site: Site, token: str, uri: str) -> Any:
    with site.client(token) as http:
        response = http.get(f"{site.url}/api/v1/resource/", params={"uri": uri})
    return response.json()["contents"] if response.status_code == 200 else None


def as_text(value: Any, read: Any) -> Any:
    """Convert to text.

    REST has JSON values where MCP has texts: a missing date is null there, and a version is a
    number.
    """
    return (
        ("" if value is None else str(value))
        if isinstance(read, str) and not isinstance(value, str)
        else value
    )


def may_see(person: str, uri: str) -> bool:
    if uri == "auth://status":
        return True
    if person == "mallory" or uri.startswith("workflow://workflows/"):  # there is no run
        return False
    return person == "carol" or not uri.startswith("admin:")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("person", ["alice", "bob", "carol", "mallory"])
def test_the_same_data_by_tool_by_resource_and_by_rest(
    site: Site,
    tokens: Tokens,
    person: str,
    era: str,
) -> None:
    token = getattr(tokens, person)

    async def scenario() -> None:
        async with (
            connected(site, token, era) as client,
            Client(pipe(site, token), mode=era) as piped,
        ):
            for uri in addresses():
                read, called = await by_resource(client, uri), await by_tool(client, uri)
                assert read == called == by_rest(site, token, uri), uri
                assert read == await by_resource(piped, uri) == await by_tool(piped, uri), uri
                assert (read is not None) == may_see(person, uri), uri

    asyncio.run(scenario())


def test_every_field_is_the_same_by_tool_and_by_resource_set_or_not(
    site: Site,
    tokens: Tokens,
) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.bob, "auto") as client:
            for uri in fields():
                [contents] = (await client.read_resource(uri)).contents
                read = await by_resource(client, uri)
                assert (
                    read
                    == await by_tool(client, uri)
                    == as_text(by_rest(site, tokens.bob, uri), read)
                ), uri
                is_version = uri.endswith("@v1")
                assert contents.meta["capabilities"]["subscribable"] is not is_version, uri

    asyncio.run(scenario())


def test_a_fragment_is_ignored_by_every_reader(site: Site, tokens: Tokens) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.bob, "auto") as client:
            for uri in (
                "mcp://backlog/tasks/TASK-0001",
                "mcp://backlog/resources/docs/a.md",
                "mcp://backlog/tasks",
            ):
                placed = f"{uri}#L1-L2"
                assert (
                    await by_resource(client, placed) == await by_resource(client, uri) is not None
                )
                assert (
                    await by_tool(client, placed)
                    == by_rest(site, tokens.bob, placed)
                    == await by_tool(client, uri)
                )

    asyncio.run(scenario())


def test_discovery_is_the_registry_grouped_by_category(site: Site, tokens: Tokens) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.bob, "auto") as client:
            answer = (await client.call_tool("get_resource", {})).structured_content
            assert (answer["uri"], answer["resource_name"]) == ("", "Available Resources")
            rows = [row for group in answer["data"].values() for row in group]
            assert [row["uri"] for row in sorted(rows, key=str)] == sorted(
                [entry.pattern for entry in REGISTRY],
                key=lambda uri: str(next(r for r in rows if r["uri"] == uri)),
            )
            fields = {
                "uri",
                "name",
                "description",
                "is_template",
                "template_variables",
                "requires_admin",
                "category",
            }
            assert all(set(row) == fields for row in rows)
            templates = {
                template.uri_template
                for template in (await client.list_resource_templates()).resource_templates
            }
            assert templates == {row["uri"] for row in rows if row["is_template"]}

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("nonsense", "InvalidURI"),
        ("mcp://backlog/nothing", "InvalidURI"),
        ("metadata://templates/", "MissingTemplateVariable"),
        ("workflow://workflows//status", "MissingTemplateVariable"),
        ("mcp://backlog/tasks/{id}", "MissingTemplateVariable"),
        ("metadata://templates/{}", "InvalidTemplateVariable"),
        ("metadata://templates/b u g", "InvalidTemplateVariable"),
        (f"ib://{TENANT}/folders/zz", "InvalidTemplateVariable"),
        ("mcp://backlog/tasks?colour=red", "InvalidTemplateVariable"),
        ("admin://users", "Unauthorized"),
        ("workflow://workflows/999999/status", "NotFound"),
        ("mcp://backlog/tasks/TASK-9999", "NotFound"),
    ],
)
def test_the_errors_of_the_spec(site: Site, tokens: Tokens, uri: str, error: str) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.alice, "auto") as client:
            called = await client.call_tool("get_resource", {"uri": uri})
            answer = called.structured_content
            assert called.is_error and (answer["success"], answer["error"]) == (False, error)
            assert answer["message"] and answer["details"] and all(answer["suggested_actions"])
            assert ("valid_uris" in answer) == (error == "InvalidURI")
            assert answer.get("valid_uris", PATTERNS) == PATTERNS
            assert await by_resource(client, uri) is None

    asyncio.run(scenario())


def test_the_words_of_the_spec(site: Site, tokens: Tokens) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.alice, "auto") as client:

            async def told(uri: str) -> tuple[str, str, str]:
                answer = (await client.call_tool("get_resource", {"uri": uri})).structured_content
                return answer["message"], answer["details"], answer["suggested_actions"][0]

            assert await told("metadata://templates/") == (
                "Template URI 'metadata://templates/{template}' requires variable(s): template",
                "Template URIs must include values for all variables.",
                "Example: get_resource('metadata://templates/bug')",
            )
            message, details, action = await told("invalid://uri")
            assert message == "Resource URI 'invalid://uri' not recognized."
            assert details.startswith("The URI must match one of the available resource patterns.")
            assert action == "Call get_resource() with no arguments to see all available resources."
            message, details, _ = await told("admin://roles")
            assert (
                message == "Resource 'admin://roles' requires admin privileges."
                and "administrators" in details
            )

    asyncio.run(scenario())


@pytest.mark.parametrize("era", ERAS)
def test_the_catalogue_pages_through_all_that_one_sees(
    site: Site,
    tokens: Tokens,
    era: str,
) -> None:
    async def scenario() -> None:
        async with connected(site, tokens.bob, era) as client:
            seen, cursor = [], None
            while True:
                page = await client.list_resources(cursor=cursor)
                seen += [resource.uri for resource in page.resources]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(seen) == len(set(seen))
            assert (
                "mcp://backlog/tasks/TASK-0001" in seen
                and "mcp://backlog/tasks/TASK-0002" not in seen
            )
            assert "mcp://backlog/resources/docs/a.md" in seen and "admin://users" not in seen
            assert f"ib://{TENANT}/folders/{IB_ID}" in seen

    asyncio.run(scenario())


def test_completion_and_prompts(site: Site, tokens: Tokens) -> None:
    from mcp.types import INVALID_PARAMS, ResourceTemplateReference

    async def scenario() -> None:
        async with connected(site, tokens.bob, "auto") as client:

            async def completed(pattern: str, name: str, value: str) -> list[str]:
                reference = ResourceTemplateReference(type="ref/resource", uri=pattern)
                return (
                    await client.complete(reference, {"name": name, "value": value})
                ).completion.values

            assert await completed("mcp://backlog/tasks/{id}", "id", "TASK-000") == ["TASK-0001"]
            assert "description" in await completed(
                "mcp://backlog/tasks/{id}/{field}", "field", "desc"
            )
            assert await completed("ib://{clientid}/folders/{id}", "clientid", "Par") == [TENANT]
            assert await completed("ib://{clientid}/resources/{id}", "id", "a") == [IB_ID]
            assert await completed("mcp://backlog/archive/{id}", "id", "TASK") == ["TASK-0002"]
            assert await completed("mcp://backlog/context/{id}", "id", "EPIC") == ["EPIC-0001"]
            assert await completed("workflow://workflows/{id}/status", "id", "TASK") == []
            assert await completed("mcp://backlog/tasks", "status", "in") == ["in_progress"]
            assert await completed("mcp://backlog/resources/{path}", "path", "do") == ["docs/"]
            assert await completed("mcp://backlog/resources/{path}", "path", "docs/") == [
                "docs/a.md"
            ]
            names = {prompt.name for prompt in (await client.list_prompts()).prompts}
            assert {"plan_epic", "triage", "standup"} <= names
            planned = await client.get_prompt("plan_epic", {"epic_id": "EPIC-0001"})
            assert "First" in planned.messages[0].content.text
            for name, arguments in MISTAKEN_PROMPTS:
                with pytest.raises(MCPError) as caught:
                    await client.get_prompt(name, arguments)
                assert (
                    caught.value.error.code == INVALID_PARAMS
                    and caught.value.error.data["suggestion"]
                ), name

    asyncio.run(scenario())
