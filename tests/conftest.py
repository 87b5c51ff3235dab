"""Start a Valkey and a data folder for each pytest process, and give its tests a database copied
from a template.
"""

import atexit
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import django
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker, blocking_manager_key

from backlog_site.devserver.embedded import throwaway_valkey, valkey_answers
from tests import databases

pytest_plugins = ["tests.people", "tests.selection"]


def start_services() -> None:
    """Start the services once per pytest process: parallel workers must not share counters,
    sessions or queues.
    """
    services = ExitStack()
    atexit.register(services.close)
    os.environ["BACKLOG_DATA_DIR"] = services.enter_context(
        tempfile.TemporaryDirectory(prefix="backlog-tests-")
    )
    os.environ["REDIS_URL"] = services.enter_context(throwaway_valkey())


def hear_signals() -> None:
    """Restore Ctrl-C and hangup, which a parent that started us in the background makes us and our
    children ignore.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def require_valkey() -> None:
    if os.environ["REDIS_URL"].rstrip("/") != settings.REDIS_URL:
        raise pytest.UsageError(
            "Django read its settings before tests/conftest.py could name the tests' servers."
        )
    if not valkey_answers(settings.REDIS_URL):
        raise pytest.UsageError(
            f"No Redis or Valkey answers at REDIS_URL={settings.REDIS_URL}; the tests need one."
        )


hear_signals()
os.environ.setdefault("BACKLOG_LOG_LEVEL", "CRITICAL")
# On import, before the conftest files of the folders below can import models.
if not os.environ.get("REDIS_URL") or os.environ.get("PYTEST_XDIST_WORKER"):
    start_services()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")
require_valkey()
django.setup()


def pytest_configure(config: pytest.Config) -> None:
    """Hide this process's servers and settings from xdist's workers, which start their own."""
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        for name in ("DJANGO_SETTINGS_MODULE", "REDIS_URL", "BACKLOG_DATA_DIR"):
            os.environ.pop(name, None)


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Replace pytest-django's fixture, which runs all migrations in every process."""
    database = using_postgres() if connection.vendor == "postgresql" else using_sqlite()
    with django_db_blocker.unblock():
        database.__enter__()
        connection._test_serialized_contents = connection.creation.serialize_db_to_string()
    yield
    with django_db_blocker.unblock():
        database.__exit__(None, None, None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Restore the roles and counters that a test without a transaction around it has flushed.

    pytest-django runs such tests last. Parallel workers run file after file, so that any test can
    follow one.
    """
    yield
    if nextitem is not None and uses_committed_rows(
        item
    ):  # after the last test there is no database
        with item.config.stash[blocking_manager_key].unblock():
            restore_rows()


def uses_committed_rows(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("django_db")
    is_marked = marker is not None and bool(marker.kwargs.get("transaction"))
    return is_marked or "transactional_db" in getattr(item, "fixturenames", ())


def restore_rows() -> None:
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        databases.load_sqlite_template(connection.connection)
        return
    options = {"allow_cascade": False, "inhibit_post_migrate": True, "reset_sequences": False}
    call_command("flush", verbosity=0, interactive=False, **options)
    connection.creation.deserialize_db_from_string(connection._test_serialized_contents)


@contextmanager
def using_sqlite() -> Iterator[None]:
    use_database("file:memorydb_default?mode=memory&cache=shared")
    connection.ensure_connection()
    databases.load_sqlite_template(connection.connection)
    yield


@contextmanager
def using_postgres() -> Iterator[None]:
    server = os.environ["DATABASE_URL"]
    name = f"test_{os.getpid()}_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
    databases.create_postgres(server, name)
    use_database(name)
    yield
    connection.close()
    connection.close_pool()
    databases.drop_postgres(server, name)


def use_database(name: str) -> None:
    connection.close()
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name
