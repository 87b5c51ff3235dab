"""Show errors: an unknown page or a failed one.

Makes no database query, because the database may be what failed.
"""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from starlette.types import Scope, Send

from backlog_site.api.actors import request_id
from backlog_site.api.errors import RETRY_AFTER_SECONDS, is_json_path, translate
from backlog_site.mcp.http import SERVER_ERROR, error_message, send_json
from resources_app.errors import Unavailable

_AWAY = {"title": "The database is unreachable", "is_away": True}
_RETRY = (b"retry-after", str(RETRY_AFTER_SECONDS).encode())


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(
        request,
        "viewer/lost.html",
        {"title": "There is no such page", "word": _word(request.path)},
        status=404,
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    reason = str(exception) or "Your account may not open this page."
    return render(
        request, "viewer/lost.html", {"title": "Not allowed", "reason": reason}, status=403
    )


def _word(path: str) -> str:
    """Return the last path segment, as a search word."""
    return path.strip("/").rpartition("/")[2][:100]


def server_error(request: HttpRequest) -> HttpResponse:
    failure = sys.exc_info()[1]
    if failure and isinstance(translate(failure), Unavailable):
        answer = render(request, "viewer/lost.html", _AWAY, status=503)
        answer["Retry-After"] = str(RETRY_AFTER_SECONDS)
        return answer
    context = {"title": "Something went wrong here", "is_broken": True, "request_id": request_id()}
    return render(request, "viewer/lost.html", context, status=500)


async def refuse_while_away(scope: Scope, send: Send) -> None:
    """Answer 503 in the format of the surface, without a thread and without the database."""
    error = Unavailable("The database is busy or unreachable.")
    if scope["path"] in {"/mcp", "/mcp/"}:
        body = error_message(SERVER_ERROR, error.message, data=error.as_json())
        await send_json(send, error.status, body, [_RETRY])
    elif is_json_path(scope["path"]):
        await send_json(send, error.status, {"error": error.as_json()}, [_RETRY])
    else:
        page = render_to_string("viewer/lost.html", _AWAY).encode()
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            _RETRY,
        ]
        headers.append((b"content-length", str(len(page)).encode()))
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": page})
