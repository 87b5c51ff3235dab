"""Read the addresses that search serves: mcp://backlog/context/{id} and ib://{clientid}/search."""

from resources_app.errors import ValidationFailed
from resources_app.intelligencebank.browsing import UNTRUSTED, freshness
from resources_app.intelligencebank.linking import connection_for
from resources_app.querying.queries import whole_number
from resources_app.reading.intelligencebank import client_of
from resources_app.reading.patterns import Entry, Rule, Watch
from resources_app.reading.read_many import MAX_TOKENS, MIN_TOKENS
from resources_app.reading.result import Reading, ReadRequest, computed
from resources_app.reading.variables import CLIENT_ID, ITEM_ID, QUERY
from search_app.context import DEFAULT_TOKENS, MAX_DEPTH, build_context
from search_app.search import search_unified

MAX_IB_QUERY = 256


def read_context(request: ReadRequest) -> Reading:
    tokens = whole_number(
        "max_tokens", request.parameter("max_tokens", str(DEFAULT_TOKENS)), MIN_TOKENS, MAX_TOKENS
    )
    depth = whole_number("depth", request.parameter("depth", "1"), 1, MAX_DEPTH)
    contents = build_context(
        request.actor.user, id=request.variables["id"], max_tokens=tokens, depth=depth
    )
    return computed(request, contents)


def read_ib_search(request: ReadRequest) -> Reading:
    """Search folders and resources of one tenant, as the caller sees them."""
    asked = [value for name, value in request.uri.query if name == "q"]
    if len(asked) != 1 or not asked[0].strip() or len(asked[0]) > MAX_IB_QUERY:
        raise ValidationFailed(
            f"q is needed once, with 1 to {MAX_IB_QUERY} characters.", field="q", value=asked
        )
    user, client_id = request.actor.user, client_of(request)
    connection_for(user, client_id)
    limit = whole_number("limit", request.parameter("limit", "20"), 1, 100)
    found = search_unified(
        user,
        asked[0],
        types=["ib_folder", "ib_resource"],
        parent_id=f"ib://{client_id}",
        limit=limit,
        cursor=request.parameter("cursor"),
    )
    return computed(
        request,
        found | {"freshness": freshness(connection_for(user, client_id)), "untrusted": UNTRUSTED},
    )


ENTRIES = (
    Entry(
        "ib://{clientid}/search?q={query}",
        "ib_search",
        "Folders and resources of IntelligenceBank by words",
        "intelligencebank",
        "application/json",
        read_ib_search,
        ("q", "limit", "cursor"),
        fills=(CLIENT_ID, QUERY),
    ),
    Entry(
        "mcp://backlog/context/{id}",
        "context",
        "A task or epic with what surrounds it, within max_tokens",
        "context",
        "application/json",
        read_context,
        ("max_tokens", "depth"),
        fills=(ITEM_ID,),
        watch=Watch(Rule.ITEM, names_one_thing=True),
    ),
)
