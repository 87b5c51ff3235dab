"""Read and write any address over REST, as one user."""

from typing import Any
from urllib.parse import quote

from tests.api.clients import ApiClient, error_of

TASK = "mcp://backlog/tasks/TASK-0039"
EPIC = "mcp://backlog/epics/EPIC-0002"


def read(client: ApiClient, uri: str, **headers: str) -> Any:
    return client.get(f"/api/v1/resource/?uri={quote(uri, safe='')}", **headers)


def contents(client: ApiClient, uri: str) -> Any:
    response = read(client, uri)
    assert response.status_code == 200, response.content
    return response.json()["contents"]


def etag_of(client: ApiClient, uri: str) -> str:
    return str(read(client, uri).json()["etag"])


def write(client: ApiClient, uri: str, operation: Any, **more: Any) -> Any:
    return client.post("/api/v1/write/", {"uri": uri, "operation": operation, **more})


def write_batch(client: ApiClient, *operations: Any, **more: Any) -> Any:
    return client.post("/api/v1/write_batch/", {"operations": list(operations), **more})


def refused(response: Any, code: str, status: int) -> dict[str, Any]:
    """Return the details of an error after checking its code, status and shape against the
    contract.
    """
    error = error_of(response)
    assert (error["code"], response.status_code) == (code, status), error
    assert error["message"] and isinstance(error["suggestion"], str)
    assert error["retryable"] is (code in {"conflict", "rate_limited", "unavailable"})
    details: dict[str, Any] = error["details"]
    return details
