"""Test bodies through a real uvicorn: bounded before they are stored, and read when they come in
chunks.
"""

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from django.core.asgi import get_asgi_application
from django.urls import path
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from backlog_site.api.limits import bounded

LIMIT = 1000


class Echo(APIView):
    authentication_classes: list[Any] = []
    permission_classes: list[Any] = []

    def post(self, request: Request) -> Response:
        return Response(request.data)


urlpatterns = [path("api/echo/", Echo.as_view())]
pytestmark = pytest.mark.urls(__name__)


@pytest.fixture
def url() -> Iterator[str]:
    server = uvicorn.Server(
        uvicorn.Config(bounded(get_asgi_application(), LIMIT), lifespan="off", log_level="error")
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=[[listener]])
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/echo/"
        server.should_exit = True
        thread.join()


def post(url: str, *chunks: bytes) -> httpx.Response:
    """Post the chunks. A generator has no length, so the client sends it chunked."""
    body = iter(chunks) if len(chunks) > 1 else chunks[0]
    return httpx.post(url, content=body, headers={"content-type": "application/json"}, timeout=30)


def of_size(size: int) -> bytes:
    return json.dumps("x" * (size - 2)).encode()


def test_a_chunked_body_is_read_like_any_other(url: str) -> None:
    assert post(url, b'{"title": ', b'"in pieces"}').json() == {"title": "in pieces"}
    assert post(url, b'{"title": "whole"}').json() == {"title": "whole"}


@pytest.mark.parametrize("chunks", [1, 5])
def test_the_limit_is_exact_with_and_without_a_stated_length(url: str, chunks: int) -> None:
    def send(body: bytes) -> httpx.Response:
        step = -(-len(body) // chunks)
        return post(url, *(body[start : start + step] for start in range(0, len(body), step)))

    assert send(of_size(LIMIT)).status_code == 200
    refused = send(of_size(LIMIT + 1))
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "validation_failed"
    assert refused.json()["error"]["details"]["max_bytes"] == LIMIT


def test_an_endless_body_is_refused_before_it_ends(url: str) -> None:
    host, port = url.removeprefix("http://").partition("/")[0].split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(
            b"POST /api/echo/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        connection.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        connection.sendall(b"7d0\r\n" + b"x" * 2000 + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 413")
