"""Test that the official client browses root → folder → resources → asset as two users and receives
changes; no secret leaks.
"""

import asyncio
import json
from typing import Any

import pytest
from mcp import Client, MCPError

from tests.intelligencebank.library import CLIENT_ID, Library, running_library  # noqa: F401
from tests.intelligencebank.worlds import folder_named
from tests.mcp.clients import ERAS, connected


async def contents(client: Client, uri: str) -> Any:
    [read] = (await client.read_resource(uri)).contents
    return json.loads(read.text)


async def mirrored_in_list(client: Client) -> list[Any]:
    found, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        found += [resource for resource in page.resources if resource.uri.startswith("ib://")]
        cursor = page.next_cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("person", "top", "leaf", "foreign"),
    [("alice", "Marketing", "Logos", "Legal"), ("bob", "Legal", "Legal", "Marketing")],
)
def test_two_people_browse_from_the_root_to_an_asset(
    library: Library, era: str, person: str, top: str, leaf: str, foreign: str
) -> None:
    async def browse() -> None:
        async with connected(library.site, library.tokens[person], era) as client:
            [listed] = await mirrored_in_list(client)
            assert (listed.name, listed.mime_type) == (
                top,
                "application/vnd.intelligencebank.folder",
            )
            assert listed.description in {"Campaigns and brand", "Folder with 10 files"}
            assert listed.annotations.audience and "untrusted" in listed.meta
            root = await contents(client, f"ib://{CLIENT_ID}/folders/root")
            assert [one["uri"] for one in root["subfolders"]] == [listed.uri]
            folder = await contents(
                client, f"ib://{CLIENT_ID}/folders/{folder_named(library.tenant, leaf)}"
            )
            page = await contents(client, folder["resources_uri"] + "?limit=3")
            asset = await contents(client, page["results"][0]["uri"])
            assert (
                asset["folder"]["id"] == folder["id"]
                and asset["freshness"] == "fresh"
                and asset["synced_at"]
            )
            found = await contents(client, f"ib://{CLIENT_ID}/search?q=asset")
            assert found["total"] == (20 if person == "alice" else 10)
            for uri in (f"folders/{folder_named(library.tenant, foreign)}", f"folders/{'f' * 32}"):
                with pytest.raises(MCPError):
                    await client.read_resource(f"ib://{CLIENT_ID}/{uri}")

    asyncio.run(browse())


@pytest.mark.parametrize("era", ERAS)
def test_a_list_that_changed_between_two_pages_is_begun_again(library: Library, era: str) -> None:
    uri = f"ib://{CLIENT_ID}/folders/{folder_named(library.tenant, 'Photos')}/resources?limit=4"

    async def walk() -> None:
        async with connected(library.site, library.tokens["alice"], era, cache=None) as client:
            first = await contents(client, uri)
            following = f"{uri}&cursor={first['next_cursor']}"
            assert (await contents(client, following))["results"]
            await asyncio.to_thread(
                rename, library, first["results"][0]["id"], f"renamed in era {era}"
            )
            with pytest.raises(MCPError) as refused:
                await client.read_resource(following)
            assert "has changed" in refused.value.error.message
            told = await client.call_tool("get_resource", {"uri": following})
            assert told.is_error and "without the cursor" in str(told.content)
            names, cursor = [], ""
            while cursor is not None:
                page = await contents(client, f"{uri}&cursor={cursor}")
                names += [one["name"] for one in page["results"]]
                cursor = page["next_cursor"]
            assert (
                len(set(names)) == len(names) == page["total"] and f"renamed in era {era}" in names
            )

    asyncio.run(walk())


def rename(library: Library, ib_id: str, name: str) -> None:
    with library.fake.lock:
        library.tenant.update(ib_id, name=name)
    platform = library.fake.urls["platform"]
    assert (
        library.site.elsewhere.sync_tenant(platform_url=platform, client_id=CLIENT_ID) == "complete"
    )


def test_an_admin_without_a_link_sees_nothing(library: Library) -> None:
    async def browse() -> None:
        async with connected(library.site, library.tokens["carol"], "auto") as client:
            assert await mirrored_in_list(client) == []
            assert (await contents(client, f"ib://{CLIENT_ID}/folders/root"))["subfolders"] == []
            assert (await contents(client, f"ib://{CLIENT_ID}/search?q=asset"))["total"] == 0

    asyncio.run(browse())


def test_a_change_in_intelligencebank_reaches_who_watches(library: Library) -> None:
    logos = folder_named(library.tenant, "Logos")
    uri = f"ib://{CLIENT_ID}/folders/{logos}/resources"

    async def watch() -> None:
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def hear(message: Any) -> None:
            if getattr(message, "method", "") == "notifications/resources/updated":
                await heard.put(message.params.uri)

        async with connected(
            library.site, library.tokens["alice"], "legacy", message_handler=hear
        ) as client:
            await client.session.subscribe_resource(uri)
            with library.fake.lock:
                library.tenant.add_resource(logos, name="A fresh logo")
            platform = library.fake.urls["platform"]
            await asyncio.to_thread(
                library.site.elsewhere.sync_tenant, platform_url=platform, client_id=CLIENT_ID
            )
            assert await asyncio.wait_for(heard.get(), 20) == uri

    asyncio.run(watch())


def test_no_answer_no_log_line_and_no_stored_byte_holds_a_secret(library: Library) -> None:
    admin = library.site.elsewhere.token(name="dora", roles=["admin"], scope="admin")
    answers = answers_to(library, library.tokens["alice"]) + answers_to(library, admin)
    log = library.site.log.read_text(errors="replace")
    stored = b"".join(file.read_bytes() for file in library.site.log.parent.glob("site.sqlite3*"))
    assert "Marketing" in answers and "backlog_ib_run" in answers and "/api/v1/ib/" in log
    assert library.fake.secrets
    for secret in library.fake.secrets:
        assert secret not in answers and secret not in log and secret.encode() not in stored


def answers_to(library: Library, token: str) -> str:
    """Return all IntelligenceBank responses: to a linked user, and to an unlinked admin."""
    base, logos = f"/api/v1/ib/{CLIENT_ID}", folder_named(library.tenant, "Logos")
    paths = [
        *(
            "/api/v1/ib/",
            f"{base}/link/",
            f"{base}/folders/root/",
            f"{base}/folders/{logos}/resources/?limit=2",
        ),
        *(
            f"{base}/folders/nonsense/",
            f"{base}/folders/root/?cursor=nonsense",
            "/metrics",
            "/readyz",
        ),
        *(
            "/api/v1/search/?q=asset&include_content=true",
            "/api/v1/changes/",
            "/api/v1/context/?query=asset",
        ),
        *(
            f"/api/v1/resource/?uri={uri}"
            for uri in ("workflow://workflows", "admin://config/sync", "auth://status")
        ),
    ]
    with library.site.client(token) as http:
        return "".join(http.get(library.site.url + path).text for path in paths)
