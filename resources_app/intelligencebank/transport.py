"""Perform one HTTP exchange with limits on destination, duration and response size."""

import socket
import ssl
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import httpcore
import httpx

from resources_app.intelligencebank.failures import ForbiddenHost, Refused, Unreachable
from resources_app.intelligencebank.hosts import HostPolicy

CONNECT_SECONDS = 5.0
READ_SECONDS = 30.0
TOTAL_SECONDS = 60.0
MAX_BODY = 32_000_000
_CHUNK = 65_536

_deadline: ContextVar[float] = ContextVar("ib_deadline")


@dataclass(frozen=True)
class RawResponse:
    status: int
    headers: httpx.Headers
    body: bytes


@dataclass(frozen=True)
class Limits:
    connect: float = CONNECT_SECONDS
    read: float = READ_SECONDS
    total: float = TOTAL_SECONDS
    body: int = MAX_BODY


class Transport:
    """Keep connections open between calls. Thread-safe."""

    def __init__(self, hosts: HostPolicy, limits: Limits | None = None) -> None:
        self.hosts = hosts
        self.limits = limits or Limits()
        self._client = httpx.Client(
            transport=_PinnedTransport(hosts),
            timeout=httpx.Timeout(self.limits.read, connect=self.limits.connect),
            follow_redirects=False,
            trust_env=False,
            headers={"Accept-Encoding": "gzip", "User-Agent": "backlog"},
        )

    def close(self) -> None:
        self._client.close()

    def exchange(self, method: str, url: str, **options: Any) -> RawResponse:
        with self.stream(method, url, **options) as response:
            body = b"".join(decoded(response, self.limits.body))
            return RawResponse(response.status_code, response.headers, body)

    @contextmanager
    def stream(
        self, method: str, url: str, *, total: float | None = None, **options: Any
    ) -> Iterator[httpx.Response]:
        """Stream a response with a total timeout.

        httpx limits each read but not their sum, so a server that drips bytes would hold the call
        forever.
        """
        self.hosts.check(url)
        token = _deadline.set(time.monotonic() + (total or self.limits.total))
        try:
            with closing(
                self._client.send(self._request(method, url, options), stream=True)
            ) as response:
                if response.is_redirect:
                    raise Refused(
                        "IntelligenceBank answered with a redirect.", response.status_code
                    )
                yield response
        except (httpx.TransportError, httpx.StreamError, zlib.error) as error:
            raise Unreachable(
                f"IntelligenceBank did not answer properly ({type(error).__name__})."
            ) from None
        finally:
            _deadline.reset(token)

    def _request(self, method: str, url: str, options: dict[str, Any]) -> httpx.Request:
        try:
            return self._client.build_request(method, url, **options)
        except (httpx.InvalidURL, ValueError):  # a URL or header that HTTP cannot carry
            raise Refused("IntelligenceBank named something that cannot be sent back.") from None


def decoded(response: httpx.Response, most: int) -> Iterator[bytes]:
    """Decompress the body in small parts, up to `most` bytes: a few kilobytes of gzip can expand to
    gigabytes.

    httpx decompresses without a limit and also handles nested encodings.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"identity", "gzip"}:
        raise Unreachable("IntelligenceBank used an encoding that was not asked for.")
    received = 0
    for part in _unpacked(response) if encoding == "gzip" else response.iter_raw(_CHUNK):
        received += len(part)
        if received > most:
            raise Unreachable("The answer of IntelligenceBank is too large.")
        yield part


def _unpacked(response: httpx.Response) -> Iterator[bytes]:
    inflate = zlib.decompressobj(wbits=31)
    for raw in response.iter_raw(_CHUNK):
        while raw and not inflate.eof:
            yield inflate.decompress(raw, _CHUNK)
            raw = inflate.unconsumed_tail
    while part := inflate.decompress(inflate.unconsumed_tail, _CHUNK):
        yield part
    if not inflate.eof:
        raise Unreachable("The answer of IntelligenceBank was cut off.")


@cache
def _trusted() -> ssl.SSLContext:
    """Return a cached SSL context: loading the certificates takes longer than a call."""
    return ssl.create_default_context()


class _PinnedTransport(httpx.HTTPTransport):
    def __init__(self, hosts: HostPolicy) -> None:
        super().__init__(verify=_trusted(), trust_env=False)
        # httpx has no option for a network backend, so its pool is replaced by one with ours.
        self._pool.close()
        self._pool = httpcore.ConnectionPool(
            ssl_context=_trusted(),
            max_connections=16,
            max_keepalive_connections=8,
            keepalive_expiry=30,
            network_backend=_PinnedBackend(hosts),
        )


class _PinnedBackend(httpcore.NetworkBackend):
    """Resolve a name once and connect to the checked address."""

    def __init__(self, hosts: HostPolicy) -> None:
        self._hosts = hosts
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore.ConnectError(str(error)) from error
        address = str(found[0][4][0])
        if not self._hosts.allows_address(host, port, address):
            raise ForbiddenHost(
                "The name of an IntelligenceBank server points to a private address."
            )
        options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), *(socket_options or ())]
        return _TimedStream(self._plain.connect_tcp(address, port, timeout, local_address, options))


class _TimedStream(httpcore.NetworkStream):
    """Limit every read and write to the remaining time of the whole call."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _remaining(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _remaining(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        return _TimedStream(
            self._stream.start_tls(ssl_context, server_hostname, _remaining(timeout))
        )

    def get_extra_info(self, name: str) -> Any:
        return self._stream.get_extra_info(name)


def _remaining(timeout: float | None) -> float:
    left = _deadline.get(time.monotonic() + TOTAL_SECONDS) - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("The call took too long.")
    return left if timeout is None else min(timeout, left)
