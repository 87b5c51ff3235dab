"""Read ib:// URIs.

IntelligenceBank ids are validated here; nothing else of a URI reaches a query.
"""

import re

from resources_app.errors import InvalidUri
from resources_app.intelligencebank import browsing
from resources_app.querying.queries import DEFAULT_LIMIT, MAX_LIMIT, whole_number
from resources_app.reading.result import Reading, ReadRequest, computed

_CLIENT_ID = re.compile(r"[A-Za-z0-9]{2,64}", re.ASCII)
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
FORMS = [
    "ib://{clientid}/folders/{id}",
    "ib://{clientid}/folders/root",
    "ib://{clientid}/resources/{id}",
]


def read_folder(request: ReadRequest) -> Reading:
    limit, cursor = _paging(request)
    shown = browsing.read_folder(
        request.actor.user,
        client_of(request),
        _identity(request, or_root=True),
        limit=limit,
        cursor=cursor,
    )
    return computed(request, shown)


def read_folder_resources(request: ReadRequest) -> Reading:
    limit, cursor = _paging(request)
    user, folder = request.actor.user, _identity(request, or_root=True)
    shown = browsing.read_folder_resources(
        user, client_of(request), folder, limit=limit, cursor=cursor
    )
    return computed(request, shown)


def read_resource(request: ReadRequest) -> Reading:
    shown = browsing.read_resource(request.actor.user, client_of(request), _identity(request))
    return computed(request, shown)


def client_of(request: ReadRequest) -> str:
    client_id = request.variables["clientid"]
    if not _CLIENT_ID.fullmatch(client_id):
        raise _refused(request, "the client id is letters and digits alone")
    return client_id


def _identity(request: ReadRequest, *, or_root: bool = False) -> str:
    identity = request.variables["id"]
    if not _ID.fullmatch(identity) and not (or_root and identity == "root"):
        raise _refused(request, "an id is 32 digits from 0 to f" + (", or root" if or_root else ""))
    return identity


def _paging(request: ReadRequest) -> tuple[int, str]:
    limit = whole_number("limit", request.parameter("limit", str(DEFAULT_LIMIT)), 1, MAX_LIMIT)
    return limit, request.parameter("cursor")


def _refused(request: ReadRequest, reason: str) -> InvalidUri:
    return InvalidUri(f"The URI cannot be used: {reason}.", uri=request.given_uri, patterns=FORMS)
