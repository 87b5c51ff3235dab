"""Connect to a fake, run syncs, and read the mirror."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.intelligencebank import connections, entitlements, linking
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.sync import runs, working
from resources_app.models import IBConnection, IBFolder, IBLink, IBResource, IBSyncRun
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD

_NOT_CONTENT = {
    "client_id",
    "thumbnail",
    "id",
    "connection",
    "generation",
    "children_generation",
    "first_seen_at",
    "updated_at",
    "written_at",
    "parent",
    "folder",
}


def connect(fake: FakeIB, client_id: str = "BnK4JV", **over: Any) -> IBConnection:
    return connections.create(
        client_id, "Demo", fake.urls["platform"], email=SERVICE, password=SERVICE_PASSWORD, **over
    )


def sync(connection: IBConnection, kind: str = "full") -> IBSyncRun:
    """Run a sync until it ends or pauses."""
    connection.refresh_from_db()
    run = runs.start(connection, kind)
    working.work(run, working.ENDLESS)
    run.refresh_from_db()
    connection.refresh_from_db()
    return run


def content(connection: IBConnection) -> list[tuple[Any, ...]]:
    """Return the mirror's content for comparison: no keys, no times, no generations."""
    rows = []
    for model, home in ((IBFolder, "parent__ib_id"), (IBResource, "folder__ib_id")):
        columns = [
            field.name for field in model._meta.concrete_fields if field.name not in _NOT_CONTENT
        ]
        found = (
            model.objects.filter(connection=connection)
            .order_by("ib_id")
            .values_list(*columns, home)
        )
        when = [columns.index(name) for name in ("missing_since", "tombstoned_at")]
        rows += [
            tuple(bool(value) if at in when else repr(value) for at, value in enumerate(row))
            for row in found
        ]
    return rows


def visible_rows(connection: IBConnection) -> set[str]:
    rows = IBResource.objects.filter(
        connection=connection, missing_since=None, folder__hidden=False
    )
    return set(rows.values_list("ib_id", flat=True))


def all_ids(fake: FakeIB, client_id: str = "BnK4JV") -> set[str]:
    from resources_app.intelligencebank.fake.world import _RESOURCE, make_id

    return {make_id(_RESOURCE, number) for number in fake.tenants[client_id].live}


def link(user: User, connection: IBConnection, email: str, password: str) -> IBLink:
    """Link as if the user had signed in with the browser."""
    client = connections.client_for(connection)
    try:
        session = client.login(email, password)
    finally:
        client.close()
    linked, _ = IBLink.objects.get_or_create(user=user, connection=connection)
    linking.keep_session(linked, session)
    entitlements.read_rights(linked)
    return linked


def expire_rights(link: IBLink) -> None:
    """Expire the rights, as a quarter of an hour later."""
    past = timezone.now() - timedelta(seconds=1)
    link.entitlements.update(expires_at=past)
    IBLink.objects.filter(pk=link.pk).update(verified_at=past - timedelta(hours=1))
