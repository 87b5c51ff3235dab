"""Serve the Connect page with a token, the command for each client, and a line that turns green on
the token's first call.
"""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from backlog_site.accounts.clients import VARIABLE, checks, connections
from backlog_site.mcp import usage
from backlog_site.viewer.shell import page, person_of, show, whole_number
from resources_app.errors import ValidationFailed
from resources_app.identity import oauth_grants, tokens
from resources_app.identity.roles import is_admin, may_write

EXPIRIES = {"30": "30 days", "90": "90 days", "365": "a year", "": "never"}


@page("GET", "HEAD", "POST")
def connect(request: HttpRequest) -> HttpResponse:
    user = person_of(request)
    made: dict[str, Any] = {}
    if request.method == "POST":
        name, scope, days = (request.POST.get(part, "") for part in ("name", "scope", "days"))
        if days not in EXPIRIES:
            raise ValidationFailed(
                "A token ends after one of these.", field="days", allowed_values=list(EXPIRIES)
            )
        token, secret = tokens.create(user, name, scope, whole_number(days))
        made = {"token": token, "secret": secret}
    url = f"{settings.PUBLIC_URL}/mcp"
    scopes = [
        "read",
        *(["write"] if may_write(user) else []),
        *(["admin"] if is_admin(user) else []),
    ]
    context: dict[str, Any] = {
        "nav": "connect",
        "url": url,
        "made": made,
        "scopes": scopes[::-1] if len(scopes) == 1 else scopes,
    }
    context |= {
        "tokens": tokens.tokens_of(user),
        "grants": oauth_grants.grants_of(user),
        "expiries": EXPIRIES,
        "variable": VARIABLE,
        "connections": connections(url),
        "checks": checks(url),
    }
    return show(request, "accounts/connect.html", context)


@page()
def check(request: HttpRequest) -> HttpResponse:
    """Report whether a token has called over MCP.

    Checks the newly created token, otherwise the user's newest.
    """
    own = tokens.tokens_of(person_of(request))
    wanted = whole_number(request.GET.get("token", ""))
    token = next((one for one in own if wanted in (None, one.pk)), None)
    called_at = usage.call_since("token", token.pk, token.created_at) if token else None
    context = {"token": token, "called_at": called_at, "is_gone": bool(wanted and not token)}
    return show(request, "accounts/_check.html", context)


@page("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    tokens.revoke_own(person_of(request), whole_number(request.POST.get("token", "")) or 0)
    return redirect("accounts:connect")


@page("POST")
def end_access(request: HttpRequest) -> HttpResponse:
    """End the access of a client that was authorized on the consent page."""
    oauth_grants.end_own(person_of(request), whole_number(request.POST.get("client", "")) or 0)
    return redirect("accounts:connect")
