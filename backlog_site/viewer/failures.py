"""What is shown when no page answers, or one has failed. Asks the database nothing: it may be what failed."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from backlog_site.api.actors import request_id


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(
        request, "viewer/lost.html", {"title": "There is no such page", "word": _word(request.path)}, status=404
    )


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    reason = str(exception) or "Your account may not open this page."
    return render(request, "viewer/lost.html", {"title": "Not allowed", "reason": reason}, status=403)


def _word(path: str) -> str:
    """What somebody may have looked for."""
    return path.strip("/").rpartition("/")[2][:100]


def server_error(request: HttpRequest) -> HttpResponse:
    context = {"title": "Something went wrong here", "is_broken": True, "request_id": request_id()}
    return render(request, "viewer/lost.html", context, status=500)
