"""Simulate a user with a browser for OAuth: sign in, read the consent page, answer it."""

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx


@dataclass
class Browser:
    username: str
    password: str
    reach: str | None = None
    allow: bool = True
    consent_page: str = ""
    http: Any = field(
        default_factory=lambda: httpx.Client(follow_redirects=True, timeout=30, trust_env=False)
    )

    def consent(self, authorization_url: str) -> dict[str, str]:
        """Return what the client gets back at its redirect address."""
        page = self.http.get(authorization_url)
        if "/login/" in str(page.url):
            fields = hidden_fields(page.text) | {
                "username": self.username,
                "password": self.password,
            }
            page = self._submit(page, fields)
        assert page.status_code == 200, page.text
        self.consent_page = page.text
        answer = {"allow": "Authorize"} if self.allow else {"refuse": "1"}
        reach = {"reach": self.reach} if self.reach else _checked(page.text)
        sent = self._submit(page, hidden_fields(page.text) | reach | answer, follow_redirects=False)
        assert sent.status_code == 302, sent.text
        return {
            name: values[0]
            for name, values in parse_qs(urlsplit(sent.headers["location"]).query).items()
        }

    def _submit(
        self, page: httpx.Response, fields: dict[str, str], **options: Any
    ) -> httpx.Response:
        headers = {"Referer": str(page.url)}
        return self.http.post(urljoin(str(page.url), ""), data=fields, headers=headers, **options)


def hidden_fields(page: str) -> dict[str, str]:
    inputs = re.findall(r"<input[^>]*type=\"hidden\"[^>]*>", page)
    return {
        _attribute(one, "name"): _attribute(one, "value")
        for one in inputs
        if _attribute(one, "value")
    }


def _checked(page: str) -> dict[str, str]:
    found = re.search(r'name="reach" value="(\w+)" checked', page)
    return {"reach": found[1]} if found else {}


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', tag)
    return unescape(found[1]) if found else ""
