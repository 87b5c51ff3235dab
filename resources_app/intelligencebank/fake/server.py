"""Serve the fake over real HTTP: platform, older API, newer API and CDN on separate ports, with
faults.
"""

import gzip
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from resources_app.intelligencebank.fake.profile import Fault
from resources_app.intelligencebank.fake.service import FakeIB, Logged, Reply
from resources_app.intelligencebank.fake.thumbnails import picture

ROLES = ("platform", "v2", "v3", "cdn")
DRIP_SECONDS = 0.05
BOMB_BYTES = 40_000_000


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int] | socket.socket, fake: FakeIB, role: str) -> None:
        """Listen on an address, or use a socket that already listens."""
        if isinstance(address, socket.socket):
            super().__init__(address.getsockname(), _Exchange, bind_and_activate=False)
            self.socket.close()
            self.socket = address
        else:
            super().__init__(address, _Exchange)
        self.fake, self.role = fake, role

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect."""


@contextmanager
def serving(
    fake: FakeIB,
    host: str = "127.0.0.1",
    first_port: int = 0,
    sockets: Sequence[socket.socket] = (),
) -> Iterator[FakeIB]:
    """Serve the fake. `first_port` 0 uses free ports. `sockets` already listen, one per role."""
    servers = []
    for index, role in enumerate(ROLES):
        address = sockets[index] if sockets else (host, first_port + index if first_port else 0)
        server = _Server(address, fake, role)
        fake.urls[role] = f"http://{host}:{server.server_address[1]}"
        servers.append(server)
    threads = [
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        for server in servers
    ]
    for thread in threads:
        thread.start()
    try:
        yield fake
    finally:
        stopping = [threading.Thread(target=server.shutdown) for server in servers]
        for thread in stopping:
            thread.start()
        for thread, server in zip(stopping, servers, strict=True):
            thread.join()
            server.server_close()


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    # Headers and body are sent together: as two packets they would wait for each other.
    wbufsize = -1
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress logging; the fake keeps its own log."""

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        fake = self.server.fake
        with fake.lock:
            fake.open_now += 1
            fake.open_most = max(fake.open_most, fake.open_now)
        try:
            stage, reply = self._reply(body)
            fault = self._fault(stage)
            status = int(fault.kind) if fault and fault.kind.isdigit() else reply.status
            fake.log.append(
                Logged(time.monotonic(), stage, status, self.headers.get("sid", "")[-6:])
            )
            self._send_faulty(reply, fault) if fault else self._send(reply)
        finally:
            with fake.lock:
                fake.open_now -= 1

    def _fault(self, stage: str) -> Fault | None:
        with self.server.fake.lock:
            for fault in self.server.fake.faults:
                if fault.strikes(stage, self.path, self.server.fake.chance):
                    return fault
        return None

    # Routes

    def _reply(self, body: bytes) -> tuple[str, Reply]:
        parts = urlsplit(self.path)
        match self.server.role, unquote(parts.path).strip("/").split("/"):
            case "platform", ["v1", "auth", "app", action]:
                return "address", self._platform(action, dict(parse_qsl(parts.query)))
            case "platform", ["auth"]:
                token = dict(parse_qsl(parts.query)).get("token", "")
                return "sign_in", self.server.fake.sign_in_page(
                    token, dict(parse_qsl(body.decode()))
                )
            case "v2", ["webapp", "1.0", "login"]:
                return "login", self.server.fake.login(dict(parse_qsl(body.decode())))
            case "v3", ["api", "json"]:
                return self._listed(*_from_json(body))
            case "v3", ["api", "3.0.0", client, "resource", identity]:
                return "file", self._file(client, identity, dict(parse_qsl(parts.query)))
            case "v3", ["api", "3.0.0", client, expression]:
                return self._listed(client, expression, _search_params(parts.query))
            case "cdn", ["cdn", _, name]:
                return "cdn", Reply(raw=picture(name.partition(".")[0]), content_type="image/png")
        return "other", Reply(404, {"error": "Not found"})

    def _platform(self, action: str, query: dict[str, str]) -> Reply:
        fake = self.server.fake
        match action:
            case "getYapiAddress":
                return fake.yapi_address()
            case "token":
                return fake.new_token()
            case "info":
                return fake.token_status(query.get("token", ""))
        return Reply(404, {"error": "Not found"})

    def _listed(self, client: str, expression: str, search: dict[str, Any]) -> tuple[str, Reply]:
        fake, sid = self.server.fake, self.headers.get("sid", "")
        query = fake.parse(expression, search)
        if query is None:
            return "other", Reply(400, {"error": "Bad expression"})
        session = fake.session_of(sid, client)
        if session is None:
            return query.stage, fake.expired()
        return query.stage, fake.overload(sid) or fake.rows(sid, session, query)

    def _file(self, client: str, identity: str, query: dict[str, str]) -> Reply:
        session = self.server.fake.session_of(self.headers.get("sid", ""), client)
        return (
            self.server.fake.file(session, identity, query.get("action", ""))
            if session
            else Reply(401, {})
        )

    # Sending

    def _send(self, reply: Reply) -> None:
        raw = reply.raw or json.dumps(reply.body).encode()
        headers = dict(reply.headers)
        if "gzip" in self.headers.get("Accept-Encoding", "") and len(raw) > 2000 and not reply.raw:
            raw, headers = gzip.compress(raw, 1), headers | {"Content-Encoding": "gzip"}
        self._head(reply.status, reply.content_type, len(raw), headers)
        self.wfile.write(raw)

    def _head(self, status: int, content_type: str, length: int, headers: dict[str, str]) -> None:
        self.send_response_only(status)
        for name, value in {
            "Content-Type": content_type,
            "Content-Length": str(length),
            **headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_faulty(self, reply: Reply, fault: Fault) -> None:
        raw = json.dumps(reply.body).encode() if reply.body is not None else reply.raw
        match fault.kind:
            case "429":
                self._send(self.server.fake.too_many())
            case kind if kind.isdigit():
                self._send(Reply(int(kind), {"error": "as ordered"}))
            case "html":
                self._send(Reply(502, raw=b"<html>Bad gateway</html>", content_type="text/html"))
            case "bad_json":
                self._send(Reply(raw=raw[:-2] + b"@"))
            case "redirect":
                self._send(Reply(302, {}, headers={"Location": "https://example.com/"}))
            case (
                "slow_headers"
                | "slow_body"
                | "truncated"
                | "reset"
                | "reset_body"
                | "gzip_bomb"
                | "gzip_twice"
            ):
                self._break_off(fault.kind, raw)
            case _:
                self._send(Reply(body=_misshapen(fault.kind, reply.body)))

    def _break_off(self, kind: str, raw: bytes) -> None:
        self.close_connection = True
        if kind == "slow_headers":
            self._drip(b"HTTP/1.1 200 OK\r\n" + b"X-Slow: 1\r\n" * 400)
        elif kind == "gzip_bomb":
            bomb = _bomb()
            self._head(200, "application/json", len(bomb), {"Content-Encoding": "gzip"})
            self.wfile.write(bomb)
        elif kind == "gzip_twice":
            packed = gzip.compress(gzip.compress(raw))
            self._head(200, "application/json", len(packed), {"Content-Encoding": "gzip, gzip"})
            self.wfile.write(packed)
        elif kind != "reset":
            self._head(200, "application/json", len(raw), {})
            self.wfile.write(raw[: len(raw) // 2])
            if kind == "slow_body":
                self._drip(raw[len(raw) // 2 :])
        self.wfile.flush()
        if kind.startswith("reset"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.shutdown(socket.SHUT_RDWR)

    def _drip(self, raw: bytes) -> None:
        for byte in raw:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(DRIP_SECONDS)


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(BOMB_BYTES), 1)


def _from_json(body: bytes) -> tuple[str, str, dict[str, Any]]:
    wanted = json.loads(body)
    return wanted["client"], wanted["table"], wanted.get("query_params", {}).get("searchParams", {})


def _search_params(query: str) -> dict[str, Any]:
    """Parse searchParams[parent]=… and searchParams[content][]=… like PHP."""
    found: dict[str, Any] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name.startswith("searchParams["):
            *above, last = re.findall(r"\[(.*?)\]", name)
            inner = found
            for key in above:
                inner = inner.setdefault(key, {})
            inner[last or str(len(inner))] = value
    return {name: _as_list(value) for name, value in found.items()}


def _as_list(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _as_list(one) for key, one in value.items()}
    return list(inner.values()) if all(key.isdigit() for key in inner) else inner


def _misshapen(kind: str, body: Any) -> Any:
    listed: Any = body.get("response") if isinstance(body, dict) else None
    match kind, listed:
        case "null_response", _:
            return {"response": None}
        case "rows_object", {"count": count}:
            return {"response": {"rows": {}, "count": count}}
        case "empty_rows", {"count": count}:
            return {"response": {"rows": [], "offset": 0, "count": count + 1}}
        case "duplicates", {"rows": rows}:
            return {
                "response": listed | {"rows": [*rows[:2], *rows[:-2]] if len(rows) > 3 else rows}
            }
        case "bad_rows", {"rows": rows}:
            bad = [None, {"name": "no id"}, {"_id": 5, "name": []}]
            return {
                "response": listed
                | {"rows": [*bad, *rows[:-3]] if len(rows) > 3 else [*bad, *rows]}
            }
    return {"unexpected": True}
