"""Run `manage.py bench_revoke NAME`: revoke the tokens of that name and print the time in seconds
since the epoch.
"""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from resources_app.identity import tokens
from resources_app.models import ApiToken


class Command(BaseCommand):
    help = "Revokes a token, for measuring how soon its streams end."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        for token in ApiToken.objects.filter(name=name):
            tokens.revoke(token)
        self.stdout.write(str(time.time()))
