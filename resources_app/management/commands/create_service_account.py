"""Create a service account.

Example: `manage.py create_service_account ci-bot --role contributor --owner alice --purpose "files
failing builds"`.
"""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from resources_app.errors import BacklogError
from resources_app.identity import service_accounts
from resources_app.identity.roles import ROLES


class Command(BaseCommand):
    help = (
        "Creates the account of an unattended agent. It cannot sign in; give it a token with"
        " create_token."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--role", required=True, choices=ROLES)
        parser.add_argument("--owner", required=True, help="the person who answers for it")
        parser.add_argument("--purpose", required=True)

    def handle(
        self, *_args: Any, username: str, role: str, owner: str, purpose: str, **_options: Any
    ) -> None:
        person = User.objects.filter(username=owner, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no active user {owner}.")
        try:
            account = service_accounts.create(username, role, person, purpose)
        except BacklogError as error:
            raise CommandError(error.message) from error
        self.stdout.write(
            f"Created {account}. Its token: manage.py create_token {account} --name … --scope …"
        )
