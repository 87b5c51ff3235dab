"""Implement one small interface (base.py) for each database."""

from django.db import connection

from search_app.backends.base import Backend
from search_app.backends.postgres import PostgresBackend
from search_app.backends.sqlite import SqliteBackend

_BACKENDS: dict[str, Backend] = {"sqlite": SqliteBackend(), "postgresql": PostgresBackend()}


def backend() -> Backend:
    return _BACKENDS[connection.vendor]
