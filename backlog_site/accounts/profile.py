"""Show the user's account and signed-in browsers."""

from django.http import HttpRequest, HttpResponse

from backlog_site.accounts.sessions import end_others, sessions_of
from backlog_site.viewer.shell import actor_of, page, person_of, show
from resources_app.reading.by_address import read


@page("GET", "HEAD", "POST")
def profile(request: HttpRequest) -> HttpResponse:
    user, current = person_of(request), request.session.session_key or ""
    ended = end_others(user, current) if request.method == "POST" else None
    status = read(actor_of(request), "auth://status").contents
    context = {
        "nav": "profile",
        "status": status,
        "sessions": sessions_of(user, current),
        "ended": ended,
    }
    return show(request, "accounts/profile.html", context)
