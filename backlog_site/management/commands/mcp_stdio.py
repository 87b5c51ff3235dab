"""Run `manage.py mcp_stdio`: the MCP server over stdin and stdout.

Logs go to stderr, as everywhere.
"""

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from backlog_site.mcp import auth, stdio


class Command(BaseCommand):
    help = "Serves MCP over stdin and stdout for the user whose API token is in BACKLOG_TOKEN."
    requires_system_checks = []

    def handle(self, *_args: Any, **_options: Any) -> None:
        if not settings.MCP_STDIO_TOKEN:
            raise CommandError(
                "Set BACKLOG_TOKEN; make a token with: python manage.py create_token USER --name N."
            )
        caller = auth.identify(settings.MCP_STDIO_TOKEN)
        if caller is None:
            raise CommandError("BACKLOG_TOKEN is unknown, revoked or expired.")
        asyncio.run(stdio.serve(caller))
