"""Test that secrets are sealed, bound to their place, and readable after key rotation."""

import pytest
from django.core.management import call_command
from django.db import connection as database

from resources_app.intelligencebank import connections, vault
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.vault import CannotOpen
from resources_app.models import IBConnection
from tests.intelligencebank.mirrors import sync
from tests.intelligencebank.worlds import SERVICE_PASSWORD

KEY = bytes(range(32))


def test_what_was_sealed_opens_only_in_its_place() -> None:
    sealed = vault.seal(KEY, "BnK4JV", "credentials", {"password": "x"})
    assert vault.unseal(KEY, "BnK4JV", "credentials", sealed) == {"password": "x"}
    for other in (
        (KEY, "6M0B", "credentials"),
        (KEY, "BnK4JV", "session"),
        (bytes(32), "BnK4JV", "credentials"),
    ):
        with pytest.raises(CannotOpen):
            vault.unseal(*other, sealed)
    with pytest.raises(CannotOpen):
        vault.unseal(KEY, "BnK4JV", "credentials", sealed[:-1] + b"\0")


def test_neither_password_nor_session_is_in_any_column(
    fake: FakeIB, connection: IBConnection
) -> None:
    sync(connection)
    dump = b""
    with database.cursor() as cursor:
        for table in database.introspection.table_names():
            if table.startswith(("resources_app", "search_app")):
                cursor.execute(f"SELECT * FROM {table}")
                dump += repr(
                    [[bytes(c) if isinstance(c, memoryview) else c for c in row] for row in cursor]
                ).encode()
    assert len(dump) > 10_000 and SERVICE_PASSWORD in fake.secrets
    assert not [secret for secret in fake.secrets if secret.encode() in dump]


def test_keys_are_rotated_under_a_new_secret_key(
    fake: FakeIB, connection: IBConnection, settings: object
) -> None:
    sync(connection)
    logins = fake.calls("login")
    old = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another " * 8, [old]
    call_command("rotate_ib_keys", verbosity=0)
    settings.SECRET_KEY_FALLBACKS = []
    assert sync(connection, "incremental").status == "complete"
    assert fake.calls("login") == logins, "the sealed session still opens"
    settings.SECRET_KEY = old
    with pytest.raises(CannotOpen):
        connections.open_session(connection, "session", IBConnection.objects.get().session)


def test_new_credentials_end_the_wait_for_them(fake: FakeIB, connection: IBConnection) -> None:
    fake.tenants["BnK4JV"].people["service@example.com"].password = "the new one"
    assert sync(connection).status == "auth_required"
    connections.change_credentials(connection, "service@example.com", "the new one")
    assert sync(connection).status == "complete"
