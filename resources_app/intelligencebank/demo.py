"""The demo tenant of `make run`: connected to a fake on this machine, with the demo team's accounts linked."""

from django.contrib.auth.models import User

from resources_app import jobs
from resources_app.intelligencebank import connections, linking
from resources_app.intelligencebank.client import IBClient
from resources_app.intelligencebank.fake import demo as library
from resources_app.intelligencebank.sync import scheduling
from resources_app.intelligencebank.sync.runs import Kind
from resources_app.jobs import RunningJob, job
from resources_app.models import IBConnection, IBLink

JOB = "ib_demo"


def is_connected() -> bool:
    """Whoever disables the connection gets no fake at the next start."""
    return IBConnection.objects.filter(client_id=library.CLIENT_ID, is_enabled=True).exists()


def request(platform_url: str) -> None:
    """A worker does it, which may speak to the fake: its address is new at every start."""
    jobs.enqueue(JOB, {"platform_url": platform_url}, key=JOB)


@job(JOB)
def connect(running: RunningJob) -> None:
    if platform_url := running.payload.get("platform_url"):
        connection = _connection(platform_url)
        client = connections.client_for(connection)
        try:
            _link_people(connection, client)
        finally:
            client.close()
        scheduling.request_run(connection, Kind.INCREMENTAL)


def _connection(platform_url: str) -> IBConnection:
    connection = IBConnection.objects.filter(client_id=library.CLIENT_ID).first()
    if connection is None:
        account = {"email": library.SERVICE, "password": library.PASSWORD}
        return connections.create(library.CLIENT_ID, "Demo library", platform_url, **account)
    connections.change(connection, platform_url=platform_url)
    return connection


def _link_people(connection: IBConnection, client: IBClient) -> None:
    for user in User.objects.filter(username__in=library.GRANTS):
        session = client.login(f"{user.username}@example.com", library.PEOPLE_PASSWORD)
        link, _ = IBLink.objects.get_or_create(user=user, connection=connection)
        linking.keep_session(link, session)
