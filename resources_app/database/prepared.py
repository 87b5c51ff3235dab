"""Prepare queries whose SQL is compiled once.

For the small queries of every request, compiling the SQL takes longer than running it.
"""

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import psycopg
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BigIntegerField, Expression, Field, QuerySet

T = TypeVar("T")
# Few sizes, so that few queries are compiled.
_SIZES = (1, 5, 20, 50, 100)
# After this many executions on a connection, psycopg prepares the statement and PostgreSQL can
# reuse its plan.
_PLANNED_AFTER = 5


class BoundedCache(Generic[T]):
    """Cache values by key. The size is bounded because callers influence the keys."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[Hashable, T] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        made = self._made.get(key)
        if made is None:
            if len(self._made) >= self._most:
                self._made.clear()
            made = self._made[key] = make()
        return made


class Param(Expression):
    """Mark a parameter of a prepared query whose value is passed with each run."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]

    def value(self, given: Mapping[str, Any], connection: Any) -> Any:
        return self.output_field.get_db_prep_value(given[self.name], connection)


class Prepared(Generic[T]):
    """Hold a queryset and its compiled SQL.

    Everything except its parameters must be the same for all callers.
    """

    def __init__(self, rows: QuerySet[Any, T]) -> None:
        self._rows: Any = rows
        self._compiler = rows.query.get_compiler(rows.db)
        try:
            self._sql, self._params = self._compiler.as_sql()
        except EmptyResultSet:
            self._sql, self._params = "", ()
        # The connection belongs to the thread that compiled the query.
        self._compiler.connection = None

    def run(self, **given: Any) -> list[T]:
        if not self._sql:
            return []
        compiler = copy.copy(self._compiler)
        compiler.connection = connection = connections[self._rows.db]
        params = [
            one.value(given, connection) if isinstance(one, Param) else one for one in self._params
        ]
        with _cursor(connection) as cursor:
            cursor.execute(self._sql, params)
            found = cursor.fetchall()
        compiler.execute_sql = lambda *args, **kwargs: [found]
        return list(self._rows._iterable_class(_Run(self._rows, compiler)))


@contextmanager
def _cursor(connection: Any) -> Iterator[Any]:
    """Yield a cursor that sends parameters separately.

    Django's cursor interpolates them into the SQL, so PostgreSQL would plan the statement anew each
    time.
    """
    # PgBouncer in transaction mode cannot keep server-side cursors or prepared statements. A
    # statement log needs the interpolated values.
    is_passing = (
        connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] or connection.queries_logged
    )
    if connection.vendor != "postgresql" or is_passing:
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    server = connection.connection
    with connection._prepare_cursor(psycopg.Cursor(server)) as cursor:
        # Set only here: otherwise psycopg would also cache the text of every other statement,
        # values included.
        server.prepare_threshold = _PLANNED_AFTER
        try:
            yield cursor
        finally:
            server.prepare_threshold = None


class _Run:
    """Implement the part of a queryset that Django's iterables use to build objects and their
    related objects.

    It has no reference cycles, so the rows are freed at once and do not wait for the garbage
    collector.
    """

    def __init__(self, rows: Any, compiler: Any) -> None:
        self.db, self.model = rows.db, rows.model
        self.query = SimpleNamespace(get_compiler=lambda using: compiler)
        self._known_related_objects: dict[Any, Any] = {}


_prepared: BoundedCache[Prepared[Any]] = BoundedCache(200)


def prepared(key: Hashable, rows: Callable[[], QuerySet[Any, T]]) -> Prepared[T]:
    return _prepared.get(key, lambda: Prepared(rows()))


def run_for(
    numbers: list[int], key: Hashable, rows: Callable[[list[Any]], QuerySet[Any, T]]
) -> list[T]:
    """Run a query for several ids. It is prepared for a few sizes; the last id pads the list."""
    size = next((size for size in _SIZES if size >= len(numbers)), 0)
    if not size or not numbers:
        return list(rows(numbers))
    names = [f"number_{place}" for place in range(size)]
    asked = prepared((key, size), lambda: rows([Param(name, BigIntegerField()) for name in names]))
    return asked.run(
        **dict(zip(names, numbers + numbers[-1:] * (size - len(numbers)), strict=True))
    )
