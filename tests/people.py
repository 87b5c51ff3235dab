"""Create the four users of the tests: alice writes, bob reads, carol administers, mallory sees
nothing.
"""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.factories import make_user


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice", "contributor")


@pytest.fixture
def bob(db: None) -> User:
    return make_user("bob", "viewer")


@pytest.fixture
def carol(db: None) -> User:
    return make_user("carol", "admin")


@pytest.fixture
def mallory(db: None) -> User:
    return make_user("mallory")


@pytest.fixture
def newer_schema(transactional_db: None) -> Iterator[str]:
    """Migrate the database to a later release, which renamed a column that every write and search
    names.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "ALTER TABLE resources_app_task RENAME COLUMN delta_weight TO weight_of_deltas"
        )
    migration = ("resources_app", "9999_made_by_a_newer_release")
    MigrationRecorder(connection).record_applied(*migration)
    try:
        yield ".".join(migration)
    finally:
        MigrationRecorder(connection).record_unapplied(*migration)
        with connection.cursor() as cursor:
            cursor.execute(
                "ALTER TABLE resources_app_task RENAME COLUMN weight_of_deltas TO delta_weight"
            )
