"""Build the actor of a request."""

import structlog
from django.http import HttpRequest
from rest_framework.request import Request

from resources_app.identity.credentials import Credential
from resources_app.identity.roles import SESSION_CLIENT, Actor
from resources_app.identity.tokens import scopes_within_role


def actor_of(request: Request, via: str = "rest") -> Actor:
    """Return the actor of a request.

    A token or client acts under its own name within its scope; a session, within its user's role.
    """
    credential = request.auth
    if isinstance(credential, Credential):
        return credential.actor(
            via, request_id=request_id(), address=request.META.get("REMOTE_ADDR", "")
        )
    return signed_in_actor(request, via)


def signed_in_actor(request: Request | HttpRequest, via: str) -> Actor:
    reach = scopes_within_role(request.user) or ["read"]
    address = request.META.get("REMOTE_ADDR", "")
    return Actor(
        request.user, via, "", request_id(), reach[-1], client=SESSION_CLIENT, address=address
    )


def request_id() -> str:
    return str(structlog.contextvars.get_contextvars().get("request_id", ""))
