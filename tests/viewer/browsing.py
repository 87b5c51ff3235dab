"""Provide a browser without JavaScript, and one whose requests come from htmx."""

import re
from typing import Any

from django.contrib.auth.models import User
from django.test import Client


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def fragment(client: Client, path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"HX-Request": "true"}
    return (
        client.get(path, headers=headers)
        if body is None
        else client.post(path, body, headers=headers)
    )


def text_of(response: Any) -> str:
    return response.content.decode()


def folded(response: Any) -> str:
    """Return the page without the line breaks and the indentation of its templates."""
    page = re.sub(r"(?<=>)\s*\n\s*|\s*\n\s*(?=<)", "", text_of(response))
    return re.sub(r"\s*\n\s*", " ", page)
