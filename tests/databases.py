"""Migrate an empty database once, then hand out copies of it: migrations cost nine seconds of CPU,
a copy none.

The SQLite template is a file in pytest's cache folder, named after the migrations it holds. On
PostgreSQL it is a database of the server under test.
"""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from filelock import FileLock

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / ".pytest_cache" / "templates"
# Other packages' migrations change only with their version, which tests/requirements.txt pins.
MIGRATED = ("resources_app", "search_app")


@cache
def schema_key() -> str:
    """Return a digest of everything that decides what `migrate` makes of an empty database."""
    digest = hashlib.sha256((ROOT / "tests/requirements.txt").read_bytes())
    for package in MIGRATED:
        spec = find_spec(package)
        assert spec is not None and spec.origin is not None
        for path in sorted((Path(spec.origin).parent / "migrations").glob("*.py")):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def sqlite_template() -> Path:
    """Return a migrated SQLite file that is no longer in WAL mode, so that it can be copied into
    memory.
    """
    template = TEMPLATES / f"{schema_key()}.sqlite3"
    if template.exists():
        return template
    TEMPLATES.mkdir(parents=True, exist_ok=True)
    with FileLock(template.with_suffix(".lock")):
        if not template.exists():
            draft = template.with_suffix(".draft")
            draft.unlink(missing_ok=True)
            migrate(f"sqlite:///{draft}")
            with closing(sqlite3.connect(draft)) as connection:
                connection.execute("PRAGMA journal_mode=DELETE")
            draft.rename(template)
    return template


def copy_sqlite_template(target: Path) -> None:
    shutil.copyfile(sqlite_template(), target)


def load_sqlite_template(connection: sqlite3.Connection) -> None:
    with closing(sqlite3.connect(sqlite_template())) as template:
        template.backup(connection)


def postgres_template(server: str) -> str:
    """Return the name of a migrated database on the server that the URL names."""
    name = f"template_{schema_key()}"
    with _locked(server) as connection:
        if _exists(connection, name):
            return name
        draft = f"{name}_draft"
        connection.execute(f"DROP DATABASE IF EXISTS {draft} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {draft}")
        migrate(database_url(server, draft))
        connection.execute(f"ALTER DATABASE {draft} RENAME TO {name}")
    return name


def create_postgres(server: str, name: str, *, migrated: bool = True) -> str:
    """Create the database `name` and return its URL."""
    template = postgres_template(server) if migrated else "template1"
    with _locked(server) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {template}')
    return database_url(server, name)


def drop_postgres(server: str, name: str) -> None:
    with _locked(server) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def database_url(server: str, name: str) -> str:
    return urlunsplit(urlsplit(server)._replace(path=f"/{name}"))


@contextmanager
def _locked(server: str) -> Iterator[psycopg.Connection]:
    """Connect for CREATE and DROP DATABASE; PostgreSQL refuses to copy a template that is in
    use.
    """
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext('backlog test templates'))")
        yield connection


def _exists(connection: psycopg.Connection, name: str) -> bool:
    return (
        connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone()
        is not None
    )


def migrate(url: str) -> None:
    variables = os.environ | {
        "DATABASE_URL": url,
        "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
    }
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=variables, check=True)
