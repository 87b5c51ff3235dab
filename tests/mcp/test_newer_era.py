"""Test the wire of 2026-07-28."""

import pytest

from tests.mcp.clients import META, MODERN, listening, modern, request, title
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site


def test_the_server_says_what_it_serves(site: Site, tokens: Tokens) -> None:
    with site.client(tokens.alice) as http:
        result = modern(site, http, "server/discover").json()["result"]
        assert result["supportedVersions"] == [MODERN]
        assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
        assert (result["cacheScope"], result["resultType"]) == ("public", "complete")
        assert modern(site, http, "resources/list").json()["result"]["cacheScope"] == "private"


def test_headers_must_say_what_the_body_says(site: Site, tokens: Tokens) -> None:
    with site.client(
        tokens.alice, **{"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call"}
    ) as http:
        answer = http.post(site.mcp, json=request("tools/list", {"_meta": META}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)


def test_an_unknown_version_is_refused_with_those_that_are_served(
    site: Site, tokens: Tokens
) -> None:
    with site.client(
        tokens.alice, **{"MCP-Protocol-Version": "2031-01-01", "Mcp-Method": "tools/list"}
    ) as http:
        meta = META | {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}
        answer = http.post(site.mcp, json=request("tools/list", {"_meta": meta}))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32022)
        assert answer.json()["error"]["data"]["supported"] == [MODERN]


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_only_posts_are_served(site: Site, tokens: Tokens, method: str) -> None:
    with site.client(tokens.alice, **{"MCP-Protocol-Version": MODERN}) as http:
        answer = http.request(method, site.mcp)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


def test_a_missing_thing_is_an_invalid_parameter(site: Site, tokens: Tokens) -> None:
    with site.client(tokens.alice) as http:
        error = modern(site, http, "fixture/fail").json()["error"]
        assert (error["code"], error["data"]["code"]) == (-32602, "not_found")


def test_a_stream_is_told_of_each_change_once_and_in_order(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Counted'})}"
    field = f"{uri}/status"
    with site.client(tokens.bob) as http, listening(site, http, uri, field) as events:
        site.elsewhere.write_many(
            operations=[{"uri": uri, "operation": title(f"t{n}")} for n in range(20)]
        )
        site.elsewhere.write(uri=field, operation={"type": "set", "value": "done"})
        told = [events.next_update() for _ in range(22)]
        assert [update["_meta"]["change"]["version"] for update in told] == [*range(2, 22), 22, 22]
        assert sorted(update["uri"] for update in told[-2:]) == [uri, field]
        assert all(
            update["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen-1"
            for update in told
        )


def test_what_may_not_be_read_may_not_be_watched(site: Site, tokens: Tokens) -> None:
    ref = site.elsewhere.create(values={"title": "For admins", "groups": ["admin"]})
    with site.client(tokens.bob) as http:
        params = {"notifications": {"resourceSubscriptions": [f"mcp://backlog/tasks/{ref}"]}}
        assert modern(site, http, "subscriptions/listen", params).json()["error"]["code"] == -32602


def test_whoever_loses_access_hears_nothing_more(site: Site, tokens: Tokens) -> None:
    uri = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Soon hidden'})}"
    with (
        site.client(tokens.bob) as http,
        site.client(tokens.carol) as admin,
        listening(site, http, uri, "mcp://backlog/tasks") as events,
        listening(site, admin, uri) as seen,
    ):
        site.elsewhere.write(uri=uri, operation=title("still seen"))
        assert {events.next_update()["uri"] for _ in range(2)} == {uri, "mcp://backlog/tasks"}
        site.elsewhere.write(
            uri=uri, operation={"type": "set", "field": "groups", "value": ["admin"]}
        )
        site.elsewhere.write(uri=uri, operation=title("hidden"))
        site.elsewhere.create(values={"title": "Seen by all"})
        after = events.next_update()
        assert (after["uri"], after["_meta"]["change"]["action"]) == (
            "mcp://backlog/tasks",
            "create",
        )
        assert [seen.next_update()["_meta"]["change"]["version"] for _ in range(3)] == [2, 3, 4]
