"""Report the state of each mirror to site operators."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import naturaltime

from resources_app.intelligencebank.browsing import freshness
from resources_app.intelligencebank.sync.advice import ADVICE
from resources_app.models import IBConnection

_NEVER = "Start one: python manage.py sync_ib --full {client_id}"
_LATE = "Is a worker running, and the scheduler? By hand: python manage.py sync_ib {client_id}"


@dataclass(frozen=True)
class MirrorHealth:
    client_id: str
    is_well: bool
    message: str
    advice: str = ""


def mirror_health() -> Iterator[MirrorHealth]:
    for connection in IBConnection.objects.filter(is_enabled=True).order_by("client_id"):
        yield _standing(connection)


def _standing(connection: IBConnection) -> MirrorHealth:
    client_id = connection.client_id
    last = connection.runs.order_by("-pk").first()
    if last is None:
        return MirrorHealth(
            client_id, False, "It was never mirrored.", _NEVER.format(client_id=client_id)
        )
    if last.status in ADVICE:
        return MirrorHealth(
            client_id,
            False,
            f"The last run is {last.get_status_display()}: {last.error}",
            ADVICE[last.status],
        )
    if connection.last_complete_at and freshness(connection) != "fresh":
        message = f"The last complete run was {naturaltime(connection.last_complete_at)}."
        return MirrorHealth(client_id, False, message, _LATE.format(client_id=client_id))
    return MirrorHealth(client_id, True, f"The last run is {last.get_status_display()}.")
