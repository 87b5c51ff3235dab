"""Compress pages and their files with gzip.

API responses stay uncompressed: their clients are near and their bodies small.
"""

import zlib
from collections.abc import AsyncIterator
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

from backlog_site.api.errors import JSON_PATHS

_WORTH_IT = (
    "text/html",
    "text/css",
    "text/javascript",
    "application/javascript",
    "image/svg+xml",
    "application/json",
)
_GZIP = 16 + zlib.MAX_WBITS


class PageCompressionMiddleware(GZipMiddleware):
    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "").partition(";")[0]
        if request.path.startswith(JSON_PATHS) or kind not in _WORTH_IT:
            return response
        if isinstance(response, StreamingHttpResponse) and response.is_async:
            return _compress_stream(request, response)
        compressed: HttpResponseBase = super().process_response(request, response)
        return compressed


def _compress_stream(
    request: HttpRequest, response: StreamingHttpResponse
) -> StreamingHttpResponse:
    """Compress the stream as one gzip member.

    Django makes a member of every chunk, and browsers read only the first.
    """
    patch_vary_headers(response, ("Accept-Encoding",))
    if response.has_header("Content-Encoding") or "gzip" not in request.headers.get(
        "Accept-Encoding", ""
    ):
        return response
    response.streaming_content = _compressed(response.streaming_content)
    del response.headers["Content-Length"]
    response.headers["Content-Encoding"] = "gzip"
    if "ETag" in response.headers and not response.headers["ETag"].startswith("W/"):
        response.headers["ETag"] = "W/" + response.headers["ETag"]
    return response


async def _compressed(chunks: Any) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    async for chunk in chunks:
        if part := packer.compress(chunk):
            yield part
    yield packer.flush()
