"""Serve Streamable HTTP up to 2025-11-25 on the SDK's kernel.

Sessions are in Redis, so any process can serve any request.
"""

import asyncio
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import Any, NoReturn

import structlog
from mcp.server import NotificationOptions, Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, aclose_shielded
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import as_request_id
from mcp.shared.jsonrpc_dispatcher import (
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp.types import INTERNAL_ERROR
from mcp.types.version import LATEST_HANDSHAKE_VERSION
from starlette.requests import Request as HttpRequest
from starlette.types import Scope, Send

from backlog_site.mcp.backchannel import Backchannel
from backlog_site.mcp.context import bind_request, current_request
from backlog_site.mcp.exchange import Answers, Exchange
from backlog_site.mcp.http import (
    PARSE_ERROR,
    PING,
    PING_SECONDS,
    EventStream,
    Message,
    RequestRefused,
    error_message,
    event,
    refusal,
    send_json,
)
from backlog_site.mcp.sessions import Session, SessionStore
from resources_app.reading.watching import Position

MAX_BATCH = 50
# A client's introduction is stored as long as its session, so a thousand of them must stay small.
MAX_INTRODUCTION = 64 * 1024
BATCHING_VERSION = "2025-03-26"
REQUEST_CANCELLED = -32800
# Tools and prompts do not change while a process runs.
ANNOUNCES = NotificationOptions(resources_changed=True)

logger = structlog.get_logger("backlog.mcp")


class SessionWatches:
    """Change the subscriptions of a session and notify its stream, which may be in any process."""

    def __init__(self, sessions: SessionStore, backchannel: Backchannel, session_id: str) -> None:
        self._sessions = sessions
        self._backchannel = backchannel
        self._session_id = session_id

    async def add(self, uri: str, position: Position) -> None:
        await self._sessions.watch(self._session_id, uri, position)
        await self._backchannel.tell("watches", session=self._session_id)

    async def remove(self, uri: str) -> None:
        await self._sessions.unwatch(self._session_id, uri)
        await self._backchannel.tell("watches", session=self._session_id)


class LegacyLeg:
    def __init__(
        self, server: Server[Any], sessions: SessionStore, backchannel: Backchannel
    ) -> None:
        self._server = server
        self._sessions = sessions
        self._backchannel = backchannel
        self._answers = Answers()
        self._running: dict[tuple[str, Any], tuple[Exchange, asyncio.Future[Message]]] = {}
        backchannel.on("answer", self._answers.arrived)
        backchannel.on("cancel", self._cancel)

    async def session_for(self, session_id: str | None) -> Session:
        if not session_id:
            raise refusal(400, "Bad Request: Missing session ID")
        session = await self._sessions.find(session_id, current_request().caller.user.pk)
        if session is None:
            raise refusal(404, "Session not found")
        return session

    async def post(self, scope: Scope, body: bytes, send: Send) -> None:
        http = HttpRequest(scope)
        has_json, has_events = check_accept_headers(http)
        if not has_json:
            raise refusal(406, "Not Acceptable: the client must accept application/json")
        message = _parse(body)
        if isinstance(message, dict) and message.get("method") == "initialize" and "id" in message:
            return await self._initialize(http, message, send)
        session = await self.session_for(http.headers.get("mcp-session-id"))
        self._bind(session)
        if isinstance(message, list):
            return await self._batch(http, session, message, send)
        stream = EventStream(send) if has_events else None
        answer = asyncio.ensure_future(self._answer(http, session, message, stream))
        return await _deliver(answer, stream, send)

    async def delete(self, scope: Scope, send: Send) -> None:
        session = await self.session_for(HttpRequest(scope).headers.get("mcp-session-id"))
        await self._sessions.end(session)
        await self._backchannel.tell("ended", session=session.id)
        await send_json(send, 200)

    async def _initialize(self, http: HttpRequest, message: Message, send: Send) -> None:
        opening = Session("", 0, LATEST_HANDSHAKE_VERSION, None, None, None)
        answer = await self._answer(http, opening, message, None)
        headers = []
        if answer and "result" in answer:
            version = answer["result"]["protocolVersion"]
            user_id = current_request().caller.user.pk
            session_id = await self._sessions.open(
                user_id, version, *_introduction(message["params"])
            )
            headers = [(b"mcp-session-id", session_id.encode())]
        await send_json(send, 200, answer, headers)

    async def _batch(
        self, http: HttpRequest, session: Session, messages: list[Any], send: Send
    ) -> None:
        if session.protocol_version != BATCHING_VERSION:
            raise refusal(400, f"Batches belong to protocol version {BATCHING_VERSION} alone.")
        if not 1 <= len(messages) <= MAX_BATCH:
            raise refusal(400, f"A batch has 1 to {MAX_BATCH} messages.")
        answers = [await self._answer_of_batch(http, session, message) for message in messages]
        given = [answer for answer in answers if answer is not None]
        await send_json(send, 200 if given else 202, given or None)

    async def _answer_of_batch(
        self, http: HttpRequest, session: Session, message: Any
    ) -> Message | None:
        try:
            return await self._answer(http, session, message, None)
        except RequestRefused as refused:
            return refused.body

    async def _answer(
        self, http: HttpRequest, session: Session, message: Any, stream: EventStream | None
    ) -> Message | None:
        """Return the response, or None for notifications and answers."""
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            raise refusal(400, "Invalid Request")
        if "method" not in message:
            await self._pass_answer_on(session, message)
            return None
        method, params = message["method"], message.get("params")
        if not isinstance(method, str) or not isinstance(params, dict | None):
            raise refusal(400, "Invalid Request", request_id=as_request_id(message.get("id")))
        if "id" not in message:
            await self._notified(session, method, params)
            return None
        request_id = as_request_id(message["id"])
        if request_id is None:
            raise refusal(400, "Invalid Request: the id must be a string or a number")
        can_ask = stream is not None and bool(session.id)
        exchange = Exchange(
            transport=TransportContext(
                kind="streamable-http", can_send_request=can_ask, headers=http.headers
            ),
            request_id=request_id,
            message_metadata=ServerMessageMetadata(request_context=http),
            progress_token=progress_token_from_params(params),
            session_id=session.id,
            stream=stream,
            answers=self._answers,
        )
        return await self._cancellable(
            session, exchange, self._serve(session, exchange, method, params)
        )

    async def _serve(
        self, session: Session, exchange: Exchange, method: str, params: Any
    ) -> Message:
        connection = Connection.from_envelope(
            session.protocol_version, session.client, session.capabilities
        )
        connection.session_id = session.id or None
        options = self._server.create_initialization_options(ANNOUNCES)
        runner = ServerRunner(self._server, connection, {}, init_options=options)
        try:
            result = await runner.on_request(exchange, method, params)
        except Exception as error:  # noqa: BLE001  # the edge: a client must get an answer
            return _failure(error, exchange)
        finally:
            await aclose_shielded(connection)
        return {"jsonrpc": "2.0", "id": exchange.request_id, "result": result}

    async def _cancellable(
        self, session: Session, exchange: Exchange, serving: Awaitable[Message]
    ) -> Message:
        key = (session.id, exchange.request_id)
        task = asyncio.ensure_future(serving)
        self._running[key] = (exchange, task)
        try:
            return await task
        except asyncio.CancelledError:
            if not exchange.cancel_requested.is_set():
                raise
            return error_message(REQUEST_CANCELLED, "Request cancelled", exchange.request_id)
        finally:
            self._running.pop(key, None)

    async def _pass_answer_on(self, session: Session, message: Message) -> None:
        if as_request_id(message.get("id")) is None or not {"result", "error"} & set(message):
            raise refusal(400, "Invalid Request")
        await self._backchannel.tell("answer", session=session.id, message=message)

    async def _notified(self, session: Session, method: str, params: Message | None) -> None:
        if method == "notifications/cancelled" and params:
            await self._backchannel.tell(
                "cancel", session=session.id, request=params.get("requestId")
            )

    def _cancel(self, body: dict[str, Any]) -> None:
        if running := self._running.get((body["session"], as_request_id(body["request"]))):
            exchange, task = running
            exchange.cancel_requested.set()
            task.cancel()

    def _bind(self, session: Session) -> None:
        request = current_request()
        watches = SessionWatches(self._sessions, self._backchannel, session.id)
        bind_request(replace(request, watches=watches))


async def _deliver(
    answer: asyncio.Future[Message | None], stream: EventStream | None, send: Send
) -> None:
    """Send plain JSON, unless events came before the answer or a slow answer needs keep-alive
    pings.
    """
    while not (await asyncio.wait({answer}, timeout=PING_SECONDS))[0]:
        if stream:
            await stream.write(PING)
    message = answer.result()
    if stream and stream.is_open:
        await stream.end(event(message) if message else b"")
    elif message is None:
        await send_json(send, 202)
    else:
        await send_json(send, 200, message)


def _introduction(params: Message) -> tuple[Any, Any]:
    client, capabilities = params["clientInfo"], params["capabilities"]
    if len(json.dumps([client, capabilities])) > MAX_INTRODUCTION:
        raise refusal(400, f"clientInfo and capabilities are longer than {MAX_INTRODUCTION} bytes.")
    return client, capabilities


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise refusal(400, "Parse error", PARSE_ERROR) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _failure(error: Exception, exchange: Exchange) -> Message:
    known = handler_exception_to_error_data(error)
    if known is None:
        logger.error("mcp_request_failed", exc_info=error)
        return error_message(INTERNAL_ERROR, "Internal server error", exchange.request_id)
    return error_message(known.code, known.message, exchange.request_id, known.data)
