"""Run `manage.py mcp_inspect`: list what an agent sees.

Replaces the package's command, which supports neither callers nor templates.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from mcp import Client

from backlog_site.mcp import auth
from backlog_site.mcp.context import Caller, Request, bind_request
from backlog_site.mcp.server import low_level
from resources_app.identity import tokens


class Command(BaseCommand):
    help = (
        "Lists tools, resources, templates and prompts as the user of BACKLOG_TOKEN sees them, or"
        " else the first admin."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        if settings.MCP_STDIO_TOKEN:
            self._inspect(settings.MCP_STDIO_TOKEN)
            return
        admin = tokens.first_admin()
        if admin is None:
            raise CommandError("There is no admin account. Run: python manage.py createsuperuser")
        with tokens.lent(admin, "mcp_inspect", "admin") as secret:
            self._inspect(secret)

    def _inspect(self, secret: str) -> None:
        caller = auth.identify(secret)
        if caller is None:
            raise CommandError("BACKLOG_TOKEN is unknown, revoked or expired.")
        for title, entries in asyncio.run(_listed(caller)).items():
            self.stdout.write(self.style.MIGRATE_HEADING(f"{title} ({len(entries)})"))
            for line in _described(entries):
                self.stdout.write(line)


async def _listed(caller: Caller) -> dict[str, list[Any]]:
    bind_request(Request(caller))
    async with Client(low_level) as client:
        return {
            "Tools": (await client.list_tools()).tools,
            "Resources, first page": (await client.list_resources()).resources,
            "Resource templates": (await client.list_resource_templates()).resource_templates,
            "Prompts": (await client.list_prompts()).prompts,
        }


def _described(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        address = getattr(entry, "uri", None) or getattr(entry, "uri_template", None) or entry.name
        yield f"  {address}: {entry.description or entry.name}"
        if properties := getattr(entry, "input_schema", {}).get("properties"):
            yield f"    {', '.join(properties)}"
