"""Seed the demo team into a database without tasks."""

import secrets
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from resources_app.demo import fill


class Command(BaseCommand):
    help = (
        "Fills the backlog with a demo team: 6 epics, 60 tasks, decision records, comments and"
        " their history."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--force", action="store_true", help="also when there are tasks already; they stay"
        )
        parser.add_argument(
            "--password", default="", help="for the new accounts; made up and shown when left out"
        )

    def handle(self, *_args: Any, force: bool, password: str, **_options: Any) -> None:
        present = fill.count_tasks()
        if present and not force:
            raise CommandError(
                f"There are already {present} tasks. Add the demo to them with --force."
            )
        password = password or secrets.token_urlsafe(9)
        fill.seed(password)
        self.stdout.write(
            f"The demo team is there: {', '.join(fill.PEOPLE)}. New accounts have the password"
            f" {password}\nNext: `make run`, then sign in as admin (all rights), alice (writes) or"
            " bob (reads).\nFor an agent: python manage.py create_token alice --name laptop"
            " --scope write"
        )
