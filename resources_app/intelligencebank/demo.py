"""Connect the demo tenant of `make run` to a local fake, with the demo team's accounts linked."""

from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.intelligencebank import connections, linking
from resources_app.intelligencebank.client import IBClient
from resources_app.intelligencebank.fake import demo as library
from resources_app.intelligencebank.sync import scheduling
from resources_app.intelligencebank.sync.runs import Kind
from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, job
from resources_app.models import IBConnection, IBLink

JOB = "ib_demo"


def is_connected() -> bool:
    """Return whether the demo is connected.

    A disabled connection gets no fake at the next start.
    """
    return IBConnection.objects.filter(client_id=library.CLIENT_ID, is_enabled=True).exists()


def request(platform_url: str) -> None:
    """Let a worker connect, since it can reach the fake, whose address changes at every start."""
    queue.enqueue(JOB, {"platform_url": platform_url}, key=f"{JOB}:{platform_url}")


@job(JOB)
def connect(running: RunningJob) -> None:
    platform_url = running.payload.get("platform_url", "")
    if platform_url not in settings.IB_LOCAL_ORIGINS:
        return  # left over from an earlier start
    connection = _connection(platform_url)
    client = connections.client_for(connection)
    try:
        service = client.login(library.SERVICE, library.PASSWORD)
        _follow(connection, service.api_url)
        _link_people(connection, client)
    finally:
        client.close()
    scheduling.request_run(connection, Kind.INCREMENTAL)


def _follow(connection: IBConnection, api_url: str) -> None:
    """Update stored sessions to the API's new address. The sessions themselves stay valid."""
    for link in IBLink.objects.filter(connection=connection).exclude(session=b""):
        purpose = f"session {link.user_id}"
        session = connections.open_session(connection, purpose, link.session)
        link.session = connections.seal_session(
            connection, purpose, replace(session, api_url=api_url)
        )
        link.save(update_fields=["session"])
    connection.session = b""
    connection.save(update_fields=["session"])


def _connection(platform_url: str) -> IBConnection:
    connection = IBConnection.objects.filter(client_id=library.CLIENT_ID).first()
    if connection is None:
        account = {"email": library.SERVICE, "password": library.PASSWORD}
        return connections.create(library.CLIENT_ID, "Demo library", platform_url, **account)
    connections.change(connection, platform_url=platform_url)
    return connection


def _link_people(connection: IBConnection, client: IBClient) -> None:
    """Link the members of the demo team who are not signed in.

    A user may have signed in with another account since.
    """
    links = IBLink.objects.filter(connection=connection, expires_at__gt=timezone.now(), error="")
    signed_in = links.exclude(session=b"").values("user")
    for user in User.objects.filter(username__in=library.GRANTS).exclude(pk__in=signed_in):
        session = client.login(f"{user.username}@example.com", library.PEOPLE_PASSWORD)
        link, _ = IBLink.objects.get_or_create(user=user, connection=connection)
        linking.keep_session(link, session)
