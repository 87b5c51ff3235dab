"""Send JSON as one user, by token or by session."""

from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.test import Client

from resources_app.identity import tokens
from resources_app.identity.roles import is_admin, may_write

_numbers = count(1)


class ApiClient:
    """Send requests as `user` with an API token of the widest scope the role allows; anonymous
    without a user.
    """

    def __init__(self, user: User | None = None, scope: str | None = None) -> None:
        self._client = Client()
        self._headers: dict[str, str] = {}
        if user:
            scope = scope or ("admin" if is_admin(user) else "write" if may_write(user) else "read")
            _, token = tokens.create(user, f"agent {next(_numbers)}", scope)
            self._headers["Authorization"] = f"Bearer {token}"

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        options: dict[str, Any] = {
            "headers": self._headers | {k.replace("_", "-"): v for k, v in headers.items()}
        }
        if body is not None:
            options |= {"data": body, "content_type": "application/json"}
        return getattr(self._client, method)(path, **options)

    def get(self, path: str, **headers: str) -> Any:
        return self.request("get", path, **headers)

    def post(self, path: str, body: Any, **headers: str) -> Any:
        return self.request("post", path, body, **headers)

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        return self.request("patch", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Any:
        return self.request("delete", path, **headers)


def error_of(response: Any) -> dict[str, Any]:
    """Return the contract's error body after checking its shape."""
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"code", "message", "details", "suggestion", "retryable"}, error
    return error
