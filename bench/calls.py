"""Send and check one request."""

from dataclasses import dataclass, field
from typing import Any

import httpx


class BenchFailed(Exception):
    """Raised when the run cannot continue. The text says why."""


@dataclass(frozen=True)
class Call:
    path: str
    body: Any = None
    method: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def verb(self) -> str:
        return self.method or ("GET" if self.body is None else "POST")

    def request(self, client: httpx.Client) -> httpx.Request:
        return client.build_request(self.verb, self.path, json=self.body, headers=self.headers)


def ask(client: httpx.Client, call: Call) -> httpx.Response:
    return checked(client.send(call.request(client)), call)


def checked(answer: httpx.Response, call: Call) -> httpx.Response:
    if not answer.is_success or (call.path == "/mcp" and is_refusal(answer.json())):
        raise BenchFailed(
            f"{call.verb} {call.path} answered {answer.status_code}: {answer.text[:500]}"
        )
    return answer


def is_refusal(message: dict[str, Any]) -> bool:
    """Return whether the message is an error. A failed MCP request is an HTTP success."""
    return "result" not in message or bool(message["result"].get("isError"))
