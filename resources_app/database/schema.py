"""Check whether this process and its database have the same schema.

During an upgrade, a process may run an older or a newer release.
"""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

from django.apps import apps
from django.db import (
    Error,
    IntegrityError,
    InterfaceError,
    OperationalError,
    ProgrammingError,
    connection,
    connections,
)
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from resources_app.errors import Unavailable

# Other packages drop old migrations when they squash them. Ours stay as long as a release may have
# applied them.
OUR_PACKAGES = frozenset({"resources_app", "search_app", "backlog_site"})


def missing_migrations() -> list[str]:
    """Return the migrations of this release that the database lacks."""
    executor = MigrationExecutor(connection)
    return [
        _name(migration)
        for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes())
    ]


def unknown_migrations() -> list[str]:
    """Return the migrations of our apps that the database has and this release lacks: a newer
    release applied them.
    """
    loader = MigrationLoader(connection)
    known = set(loader.disk_migrations)
    for migration in loader.disk_migrations.values():
        known |= {(label, name) for label, name in migration.replaces}
    labels = {
        config.label
        for config in apps.get_app_configs()
        if config.name.split(".")[0] in OUR_PACKAGES
    }
    unknown = [key for key in loader.applied_migrations if key[0] in labels and key not in known]
    return sorted(f"{label}.{name}" for label, name in unknown)


def refusal_of(error: Error) -> Unavailable | None:
    """Return the error to raise for a transient database error or a schema mismatch, or None for
    any other error.
    """
    if _is_about_the_statement(error):
        # In a separate thread: the caller may be inside a failed transaction or an event loop.
        with ThreadPoolExecutor(max_workers=1) as asking:
            return asking.submit(_mismatch).result()
    if isinstance(error, OperationalError | InterfaceError):
        return Unavailable("The database is busy or unreachable.")
    return None


def newer_schema(unknown: list[str]) -> Unavailable:
    return Unavailable(
        f"The database belongs to a newer release than this process: {', '.join(unknown)}.",
        suggestion=(
            "Send the request again. The operator restarts this process with the newer release."
        ),
        unknown_migrations=unknown,
    )


def older_schema(missing: list[str]) -> Unavailable:
    return Unavailable(
        f"The database is not migrated to this release: {', '.join(missing)}.",
        suggestion="Send the request again. The operator runs manage.py migrate.",
        missing_migrations=missing,
    )


def _is_about_the_statement(error: Error) -> bool:
    """Return whether the statement itself failed.

    SQLite reports an unknown column or table with its generic error code.
    """
    if isinstance(error, ProgrammingError | IntegrityError):
        return True
    return getattr(error.__cause__, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _mismatch() -> Unavailable | None:
    try:
        if unknown := unknown_migrations():
            return newer_schema(unknown)
        missing = missing_migrations()
        return older_schema(missing) if missing else None
    except Error:
        return None
    finally:
        connections.close_all()


def _name(migration: object) -> str:
    return f"{getattr(migration, 'app_label', '')}.{getattr(migration, 'name', '')}"
