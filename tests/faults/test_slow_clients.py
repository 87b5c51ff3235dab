"""Test slow and anonymous clients: they are dropped, and nothing of theirs is stored."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from backlog_site.devserver.embedded import end_group, free_port, running_valkey, spawn
from tests.faults.surroundings import PATIENCE_SECONDS, eventually, served, token_of
from tests.mcp.site import ROOT, Site

STATED, SENT = 4_000_000, 1_000_000


@contextmanager
def guarded_web(
    site: Site, log: Path, **variables: str
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    command = [
        *(
            sys.executable,
            "-m",
            "uvicorn",
            "backlog_site.asgi:application",
            "--port",
            str(port),
            "--lifespan",
            "on",
        ),
        *("--no-proxy-headers", "--http", "backlog_site.serving.connections:TimedConnection"),
    ]
    with log.open("ab") as output:
        process = spawn(
            command, output=output, environment=site.environment | variables, folder=ROOT
        )
    try:
        assert eventually(lambda: _answers(port)), log.read_text(errors="replace")
        yield port, process
    finally:
        end_group(process)


def _answers(port: int) -> bool:
    try:
        return (
            httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False, timeout=30).status_code
            == 200
        )
    except httpx.TransportError:
        return False


def connection(port: int, sent: bytes) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS)
    opened.sendall(sent)
    return opened


def head(path: str, length: int, token: str = "") -> bytes:
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type:"
        f" application/json\r\n{authorization}Content-Length: {length}\r\n\r\n"
    ).encode()


def status(opened: socket.socket) -> int:
    """Return the status of the response, which arrives although the request never ends."""
    with opened.makefile("rb") as answer:
        line = answer.readline()
    return int(line.split()[1]) if line else 0


def rss(process: subprocess.Popen[bytes]) -> int:
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) // 1024


def test_slow_heads_and_slow_bodies_are_ended_and_anonymous_bodies_are_not_read(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    with (
        running_valkey(redis_url, redis_home),
        served(redis_url) as (site, http, _),
        guarded_web(site, tmp_path / "web.log") as (port, process),
        ExitStack() as opened,
    ):
        before = rss(process)
        heads = [
            opened.enter_context(connection(port, b"GET / HTTP/1.1\r\nHost: 127.0"))
            for _ in range(20)
        ]
        anonymous = [
            opened.enter_context(connection(port, head(path, STATED)))
            for path in ("/api/v1/write/", "/mcp")
        ]
        unknown = opened.enter_context(
            connection(port, head("/api/v1/write/", STATED, "bl_invented"))
        )
        unknown.sendall(b"x" * SENT)
        slow = [
            opened.enter_context(connection(port, head(path, 100, token_of(http)) + b'{"uri": '))
            for path in ("/api/v1/write/", "/mcp")
        ]
        # Answered before their bodies arrive, the last one after half of it.
        assert [status(one) for one in (*anonymous, unknown)] == [401, 401, 401]
        assert {status(one) for one in heads} == {408}
        assert {status(one) for one in slow} == {408}
        assert http.get(f"http://127.0.0.1:{port}/api/v1/tasks/").status_code == 200
        assert rss(process) < before + 60


def test_a_body_that_keeps_coming_is_read_to_its_end(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    with (
        running_valkey(redis_url, redis_home),
        served(redis_url) as (site, http, uri),
        guarded_web(site, tmp_path / "web.log") as (port, _),
    ):

        def parts() -> Iterator[bytes]:
            yield b'{"uri": "' + uri.encode() + b'", "operation": {"type": "append", "content": "'
            for _ in range(10):
                yield b"many words " * 10_000
            yield b'"}}'

        answer = http.post(f"http://127.0.0.1:{port}/api/v1/write/", content=parts())
        assert answer.status_code == 200, answer.text
        upload = b"".join(b"%06d\n" % number for number in range(200_000))
        put = http.put(
            f"http://127.0.0.1:{port}/api/v1/resources/big.txt",
            content=upload,
            headers={"Content-Type": "text/plain"},
        )
        assert (put.status_code, put.json()["size"]) == (201, len(upload))


def test_more_connections_than_allowed_are_refused(
    redis_url: str, redis_home: Path, tmp_path: Path
) -> None:
    with (
        running_valkey(redis_url, redis_home),
        served(redis_url) as (site, _, _),
        guarded_web(site, tmp_path / "web.log", BACKLOG_MAX_CONNECTIONS="10") as (port, _),
        ExitStack() as opened,
    ):
        refused = [
            opened.enter_context(connection(port, b"GET / HTTP/1.1\r\n")) for _ in range(30)
        ][-1]
        assert status(refused) in {503, 0}
        # Waiting connections are dropped, and there is room again.
        assert eventually(lambda: _answers(port))
