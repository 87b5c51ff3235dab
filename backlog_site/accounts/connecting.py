"""Connect your agent: a token, the words each client wants, and a light that turns green on the first call."""

import base64
import json
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from backlog_site.viewer.shell import page, person_of, show, whole_number
from resources_app import oauth_grants, tokens
from resources_app.access import is_admin, may_write
from resources_app.errors import ValidationFailed

NAME = "backlog"
VARIABLE = "BACKLOG_TOKEN"
EXPIRIES = {"30": "30 days", "90": "90 days", "365": "a year", "": "never"}


@page("GET", "HEAD", "POST")
def connect(request: HttpRequest) -> HttpResponse:
    user = person_of(request)
    made: dict[str, Any] = {}
    if request.method == "POST":
        name, scope, days = (request.POST.get(part, "") for part in ("name", "scope", "days"))
        if days not in EXPIRIES:
            raise ValidationFailed("A token ends after one of these.", field="days", allowed_values=list(EXPIRIES))
        token, secret = tokens.create(user, name, scope, whole_number(days))
        made = {"token": token, "secret": secret}
    url = f"{settings.PUBLIC_URL}/mcp"
    scopes = ["read", *(["write"] if may_write(user) else []), *(["admin"] if is_admin(user) else [])]
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
        **client_samples(url),
    }
    return show(request, "accounts/connect.html", context)


@page()
def check(request: HttpRequest) -> HttpResponse:
    """Asked every few seconds, until an agent has called."""
    used = [token for token in tokens.tokens_of(person_of(request)) if token.last_used_at]
    used.sort(key=lambda token: str(token.last_used_at), reverse=True)
    return show(request, "accounts/_check.html", {"used": used[0] if used else None})


@page("POST")
def revoke(request: HttpRequest) -> HttpResponse:
    tokens.revoke_own(person_of(request), whole_number(request.POST.get("token", "")) or 0)
    return redirect("accounts:connect")


@page("POST")
def end_access(request: HttpRequest) -> HttpResponse:
    """Of a client that was let in through the consent page."""
    oauth_grants.end_own(person_of(request), whole_number(request.POST.get("client", "")) or 0)
    return redirect("accounts:connect")


def client_samples(url: str) -> dict[str, str]:
    """The secret is never in them: it stays in a variable, or the client asks for it."""
    bearer = {"Authorization": f"Bearer ${{env:{VARIABLE}}}"}
    cursor = {"url": url, "headers": bearer}
    asked = {"type": "promptString", "id": "backlog-token", "description": "Backlog token", "password": True}
    server = {"type": "http", "url": url, "headers": {"Authorization": "Bearer ${input:backlog-token}"}}
    remote = ["-y", "mcp-remote", url, "--header", "Authorization:${AUTH}"]
    desktop = {"command": "npx", "args": remote, "env": {"AUTH": "Bearer <your token>"}}
    greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "curl", "version": "1"}}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting})
    return {
        "claude_code": (
            f'claude mcp add --transport http --scope user --header "Authorization: Bearer ${VARIABLE}" {NAME} {url}'
        ),
        "cursor_json": json.dumps({"mcpServers": {NAME: cursor}}, indent=2),
        "cursor_link": "cursor://anysphere.cursor-deeplink/mcp/install?name="
        f"{NAME}&config={quote(base64.b64encode(json.dumps(cursor).encode()).decode())}",
        "vscode_json": json.dumps({"inputs": [asked], "servers": {NAME: server}}, indent=2),
        "vscode_link": "vscode:mcp/install?" + quote(json.dumps({"name": NAME, **server, "inputs": [asked]})),
        "desktop_json": json.dumps({"mcpServers": {NAME: desktop}}, indent=2),
        "curl": (
            f'curl -s {url} -H "Authorization: Bearer ${VARIABLE}" -H "Content-Type: application/json" \\\n'
            '  -H "Accept: application/json, text/event-stream" \\\n'
            f"  -d '{hello}'"
        ),
    }
