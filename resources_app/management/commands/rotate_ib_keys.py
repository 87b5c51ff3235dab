"""Rotate the keys of the stored IntelligenceBank secrets, under the current SECRET_KEY."""

from typing import Any

from django.core.management.base import BaseCommand

from resources_app.intelligencebank import connections
from resources_app.models import IBConnection


class Command(BaseCommand):
    help = (
        "Seals every secret of IntelligenceBank again with new keys. "
        "After changing SECRET_KEY keep the old one in SECRET_KEY_FALLBACKS until this has run."
    )

    def handle(self, *_args: Any, **_options: Any) -> None:
        for connection in IBConnection.objects.order_by("client_id"):
            connections.rotate_keys(connection)
            self.stdout.write(f"{connection.client_id}: sealed under new keys")
