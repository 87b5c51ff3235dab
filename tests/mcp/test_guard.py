"""Test what is rejected before anything is served: anonymous callers, foreign pages, broken and
oversized bodies.
"""

import pytest

from tests.mcp.clients import MODERN, initialize, modern, request, session
from tests.mcp.conftest import Tokens
from tests.mcp.site import Site

DEEP = "[" * 100_000
MALFORMED = {
    "nothing": b"",
    "not JSON": b"{not json",
    "a number": b"42",
    "null": b"null",
    "a string": b'"ping"',
    "an empty object": b"{}",
    "an empty batch": b"[]",
    "a batch of nonsense": b"[1, null, []]",
    "nested without end": DEEP.encode(),
    "nested parameters": (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":'
        + b'{"a":' * 5000
        + b"1"
        + b"}" * 5001
        + b"}"
    ),
    "not a number": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}',
    "a number without end": b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}',
    "UTF-16": '{"jsonrpc":"2.0","id":1,"method":"ping"}'.encode("utf-16"),
    "half a character": (
        rb'{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"mcp://backlog/tasks?search=\ud800"}}'
    ),
    "a NUL": (
        rb'{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"mcp://backlog/tasks/\u0000"}}'
    ),
    "the wrong version": b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    "a method that is no string": b'{"jsonrpc":"2.0","id":1,"method":["ping"]}',
    "parameters that are a list": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}',
    "an id that is an object": b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    "an id that is a truth": b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":"x","result":{}}',
    "an answer without content": b'{"jsonrpc":"2.0","id":"x"}',
    "keys twice": b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"no/such"}',
    "a broken start": (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":7}}'
    ),
    "a tool that is no name": (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{"a":1},"arguments":[]}}'
    ),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED)
def test_a_broken_body_is_an_answer_and_the_server_stays(
    site: Site, tokens: Tokens, body: bytes
) -> None:
    with session(site, tokens.alice) as http:
        assert http.post(site.mcp, content=body).status_code in {200, 202, 400}
        newer = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "ping"}
        assert http.post(site.mcp, content=body, headers=newer).status_code in {200, 202, 400, 404}
        assert http.post(site.mcp, json=request("ping")).json()["result"] == {}


@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
def test_a_body_larger_than_four_mebibytes_is_refused(site: Site, tokens: Tokens, era: str) -> None:
    with session(site, tokens.alice) as http:
        large = (
            b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"' + b"x" * (4 << 20) + b'"}}'
        )
        headers = {"MCP-Protocol-Version": era, "Mcp-Method": "ping"}
        assert http.post(site.mcp, content=large, headers=headers).status_code == 413
        parts = (large[start : start + 65536] for start in range(0, len(large), 65536))
        assert http.post(site.mcp, content=parts, headers=headers).status_code == 413


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer nonsense", "Basic YTpi", "Bearer bl_" + "x" * 43]
)
@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
def test_a_stranger_is_asked_for_a_token(site: Site, header: str | None, era: str) -> None:
    with site.client(None, **{"MCP-Protocol-Version": era}) as http:
        if header is not None:
            http.headers["Authorization"] = header
        for method in ("POST", "GET", "DELETE"):
            answer = http.request(method, site.mcp, json=request("ping"))
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["error"]["code"] == "unauthenticated"


def test_a_token_works_whatever_the_case_of_its_scheme(site: Site, tokens: Tokens) -> None:
    with site.client(None, Authorization=f"bearer {tokens.alice}") as http:
        assert modern(site, http, "tools/list").status_code == 200


@pytest.mark.parametrize(
    ("client", "resources", "mcp", "rest"),
    [
        ("ours", ["{mcp}"], 200, 200),
        ("slash", ["{mcp}/"], 200, 200),
        ("elsewhere", ["https://elsewhere.example/mcp"], 401, 401),
        ("any", [], 401, 401),
        ("below", ["{mcp}/x"], 401, 401),
        ("whole", ["{site}"], 401, 200),
        ("both", ["{site}", "{mcp}"], 200, 200),
        ("port", ["http://127.0.0.1:1/mcp"], 401, 401),
        ("beside", ["{mcp}.evil.example"], 401, 401),
    ],
)
def test_an_oauth_token_opens_the_server_it_was_issued_for_alone(
    site: Site, tokens: Tokens, client: str, resources: list[str], mcp: int, rest: int
) -> None:
    named = [one.format(mcp=site.mcp, site=site.url) for one in resources]
    with site.client(site.elsewhere.granted(name="alice", client=client, resources=named)) as http:
        assert modern(site, http, "tools/list").status_code == mcp
        assert initialize(site, http).status_code == mcp
        for path in ("/api/v1/tasks/", "/mcp/resource?uri=auth://status", "/api/schema/"):
            assert http.get(f"{site.url}{path}").status_code == rest
        with http.stream(
            "GET", f"{site.url}/api/v1/events/", headers={"Accept": "text/event-stream"}
        ) as events:
            assert events.status_code == rest


SAME, OTHER = "{netloc}", "evil.example"
SOURCES = [
    (SAME, None, 200),
    (SAME, "http://{netloc}", 200),
    (SAME, "https://{netloc}", 200),
    ("localhost:{port}", "http://localhost:{port}", 200),
    ("localhost", None, 200),
    (SAME, "http://evil.example", 403),
    (SAME, "null", 403),
    (SAME, "", 403),
    (SAME, "http://127.0.0.1", 403),
    (SAME, "http://127.0.0.1:{port}.evil.example", 403),
    (SAME, "http://localhost:{port}", 403),
    (SAME, "file://", 403),
    (OTHER, None, 421),
    (OTHER, "http://evil.example", 421),
    ("evil.example:{port}", "http://{netloc}", 421),
    ("127.0.0.1.evil.example", None, 421),
    ("127.0.0.1@evil.example", None, 421),
    ("", None, 421),
]


@pytest.mark.parametrize(("host", "origin", "status"), SOURCES)
@pytest.mark.parametrize("era", ["2025-11-25", MODERN])
def test_only_our_own_host_and_pages_get_in(
    site: Site, tokens: Tokens, host: str, origin: str | None, status: int, era: str
) -> None:
    names = {"netloc": site.url.removeprefix("http://"), "port": site.url.rpartition(":")[2]}
    headers = {"Host": host.format(**names)} | (
        {} if origin is None else {"Origin": origin.format(**names)}
    )
    with session(site, tokens.alice) as http:
        http.headers.update(headers)
        if era == MODERN:
            assert modern(site, http, "tools/list").status_code == status
        else:
            assert http.post(site.mcp, json=request("ping")).status_code == status


def test_only_json_is_read(site: Site, tokens: Tokens) -> None:
    with session(site, tokens.alice) as http:
        headers = {"Content-Type": "text/plain"}
        assert http.post(site.mcp, json=request("ping"), headers=headers).status_code == 400
        headers = {"Content-Type": "application/json; charset=utf-8"}
        assert http.post(site.mcp, json=request("ping"), headers=headers).status_code == 200
        assert (
            http.post(site.mcp, json=request("ping"), headers={"Accept": "text/html"}).status_code
            == 406
        )


def test_the_resource_address_below_mcp_belongs_to_django(site: Site, tokens: Tokens) -> None:
    with site.client(tokens.alice) as http:
        answer = http.get(f"{site.url}/mcp/resource")
        assert "jsonrpc" not in answer.text
        assert http.post(f"{site.mcp}/", json=request("ping")).json()["error"]["code"] == -32600
