"""Create an API token. stdout contains only the token, so that scripts can capture it."""

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from resources_app.errors import BacklogError
from resources_app.fields.declarations import clean_text
from resources_app.identity import tokens
from resources_app.models import ApiToken


class Command(BaseCommand):
    help = "Makes an API token and prints it, once: only its hash is kept."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username", metavar="USER")
        parser.add_argument(
            "--name", required=True, help="what the token is for; shown as the agent in the history"
        )
        parser.add_argument("--scope", required=True, choices=ApiToken.Scope.values)
        parser.add_argument(
            "--expires",
            type=int,
            metavar="DAYS",
            help="valid for so many days; without it, for ever",
        )

    def handle(
        self,
        *_args: Any,
        username: str,
        name: str,
        scope: str,
        expires: int | None,
        **_options: Any,
    ) -> None:
        try:
            token, secret = tokens.create(_user(username), name, scope, expires)
        except BacklogError as error:
            raise CommandError(f"{error.message} {error.suggestion}".strip()) from error
        until = f"until {token.expires_at:%Y-%m-%d}" if token.expires_at else "until it is revoked"
        self.stderr.write(
            f"Token {token.name!r} of {username} with scope {scope}, valid {until}. It is shown"
            " only now:"
        )
        self.stdout.write(secret)


def _user(username: str) -> User:
    try:
        return User.objects.get_by_natural_key(clean_text("USER", username, 150))
    except User.DoesNotExist:
        known = (
            ", ".join(User.objects.order_by("username").values_list("username", flat=True)[:20])
            or "none"
        )
        raise CommandError(f"There is no user {username!r}. Known users: {known}.") from None
