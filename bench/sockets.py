"""Send requests and read responses with minimal work, so that the client leaves the cores to the
server.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from bench.calls import Call


class Connection:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._token = token

    async def ask(self, call: Call) -> tuple[int, bytes]:
        """Return the status and the body."""
        status, headers = await self.begin(call)
        if b"content-length" in headers:
            return status, await self._reader.readexactly(int(headers[b"content-length"]))
        return status, await self._chunks()

    async def begin(self, call: Call) -> tuple[int, dict[bytes, bytes]]:
        """Return the status and the headers; `lines` yields the rest of an endless response."""
        self._writer.write(_request(call, self._token))
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        return int(first.split()[1]), dict(line.split(b": ", 1) for line in lines if line)

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield lines up to the final empty chunk.

        The connection stays open for seconds after it.
        """
        while (line := await self._reader.readline()) not in {b"", b"0\r\n"}:
            yield line

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return body


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Connection]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield Connection(reader, writer, token)
    finally:
        writer.close()


def _request(call: Call, token: str) -> bytes:
    body = b"" if call.body is None else json.dumps(call.body).encode()
    headers = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {token}",
        "Content-Length": len(body),
        **call.headers,
    }
    if body:
        headers["Content-Type"] = "application/json"
    lines = [
        f"{call.verb} {call.path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body
