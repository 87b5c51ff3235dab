"""Provide a running fake, settings that trust it, and no waiting."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.intelligencebank import connections
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.intelligencebank.limiting import connection_to_redis
from resources_app.intelligencebank.retrying import Patience
from resources_app.models import IBConnection, IBLink
from tests.intelligencebank.mirrors import connect, link, sync
from tests.intelligencebank.worlds import ALICE, BOB, fill_tenant, running_fake


@pytest.fixture
def fake(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeIB]:
    for key in connection_to_redis().scan_iter("ib:*"):
        connection_to_redis().delete(key)
    monkeypatch.setattr(
        connections, "Patience", lambda attempts, seconds: Patience(2, seconds, lambda pause: None)
    )
    with running_fake() as fake:
        settings.IB_LOCAL_ORIGINS = list(fake.urls.values())
        settings.IB_RATE_SECONDS = 0.01
        yield fake


@pytest.fixture
def tenant(fake: FakeIB) -> Tenant:
    return fill_tenant(fake)


@pytest.fixture
def connection(db: None, fake: FakeIB, tenant: Tenant) -> IBConnection:
    return connect(fake)


@pytest.fixture
def mirrored(connection: IBConnection) -> IBConnection:
    assert sync(connection).status == "complete"
    return connection


@pytest.fixture
def alices_link(mirrored: IBConnection, alice: User) -> IBLink:
    """Link alice, who may see Marketing and download from it."""
    return link(alice, mirrored, ALICE, "alice-secret-word")


@pytest.fixture
def bobs_link(mirrored: IBConnection, bob: User) -> IBLink:
    """Link bob, who may see only Legal."""
    return link(bob, mirrored, BOB, "bob-secret-word")
