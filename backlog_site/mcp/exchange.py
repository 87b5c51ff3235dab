"""Run one request of the handshake era through the SDK's kernel."""

import asyncio
import secrets
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import ProgressToken, RequestId

from backlog_site.mcp.http import EventStream, Message, event

ANSWER_SECONDS = 300
REQUEST_TIMEOUT = -32001


class Answers:
    """Track requests from the server to a client.

    An answer may arrive at any process; each checks its own requests.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], asyncio.Future[Message]] = {}

    def arrived(self, body: dict[str, Any]) -> None:
        waiting = self._waiting.get((body["session"], str(body["message"].get("id"))))
        if waiting and not waiting.done():
            waiting.set_result(body["message"])

    async def wait_for(
        self, session_id: str, request_id: str, ask: Awaitable[None], seconds: float
    ) -> Message:
        key = (session_id, request_id)
        self._waiting[key] = asyncio.get_running_loop().create_future()
        try:
            await ask
            return await asyncio.wait_for(self._waiting[key], seconds)
        except TimeoutError:
            raise MCPError(REQUEST_TIMEOUT, "The client did not answer in time.") from None
        finally:
            del self._waiting[key]


@dataclass
class Exchange:
    """Implement the SDK's DispatchContext structurally.

    Without a stream only the answer itself reaches the client.
    """

    transport: TransportContext
    request_id: RequestId
    message_metadata: ServerMessageMetadata
    progress_token: ProgressToken | None
    session_id: str
    stream: EventStream | None
    answers: Answers
    cancel_requested: anyio.Event = field(default_factory=anyio.Event)

    @property
    def can_send_request(self) -> bool:
        return self.transport.can_send_request

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        if self.stream is None or not self.can_send_request:
            raise NoBackChannelError(method)
        request_id = f"server-{secrets.token_hex(8)}"
        request = {
            "jsonrpc": "2.0",
            "id": request_id,
            "method": method,
            "params": dict(params or {}),
        }
        seconds = (opts or {}).get("timeout") or ANSWER_SECONDS
        answer = await self.answers.wait_for(
            self.session_id, request_id, self.stream.write(event(request)), seconds
        )
        return _result(answer)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        if self.stream:
            given = {} if params is None else {"params": dict(params)}
            await self.stream.write(event({"jsonrpc": "2.0", "method": method, **given}))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        if self.progress_token is None:
            return
        told = {
            "progressToken": self.progress_token,
            "progress": progress,
            "total": total,
            "message": message,
        }
        await self.notify(
            "notifications/progress",
            {key: value for key, value in told.items() if value is not None},
        )


def _result(answer: Message) -> dict[str, Any]:
    error = answer.get("error")
    if isinstance(error, dict):
        raise MCPError(int(error.get("code", 0)), str(error.get("message", "")), error.get("data"))
    result = answer.get("result")
    return result if isinstance(result, dict) else {}
