"""Queries whose SQL is made once. For the small ones that every request asks, making it takes longer than running it."""

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
# Few, so that few queries are made.
_SIZES = (1, 5, 20, 50, 100)
# Run so often on a connection, PostgreSQL plans it for good.
_PLANNED_AFTER = 5


class Memory(Generic[T]):
    """What was made for a key. Bounded, because callers choose among the keys."""

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


class Given(Expression):
    """A place in a prepared query whose value comes with each run."""

    def __init__(self, name: str, output_field: "Field[Any, Any]") -> None:
        super().__init__(output_field)
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]

    def value(self, given: Mapping[str, Any], connection: Any) -> Any:
        return self.output_field.get_db_prep_value(given[self.name], connection)


class Prepared(Generic[T]):
    """A queryset with its SQL. Everything else in it must be the same for whoever shares it."""

    def __init__(self, rows: QuerySet[Any, T]) -> None:
        self._rows: Any = rows
        self._compiler = rows.query.get_compiler(rows.db)
        try:
            self._sql, self._params = self._compiler.as_sql()
        except EmptyResultSet:
            self._sql, self._params = "", ()
        # Of the thread that made it.
        self._compiler.connection = None

    def run(self, **given: Any) -> list[T]:
        if not self._sql:
            return []
        compiler = copy.copy(self._compiler)
        compiler.connection = connection = connections[self._rows.db]
        params = [one.value(given, connection) if isinstance(one, Given) else one for one in self._params]
        with _cursor(connection) as cursor:
            cursor.execute(self._sql, params)
            found = cursor.fetchall()
        compiler.execute_sql = lambda *args, **kwargs: [found]
        return list(self._rows._iterable_class(_Run(self._rows, compiler)))


@contextmanager
def _cursor(connection: Any) -> Iterator[Any]:
    """Django's writes the values into the SQL, which PostgreSQL then plans anew each time; this one leaves them apart."""
    # What cannot keep a cursor, cannot keep a plan: a bouncer is between. A log of the statements wants them with their values.
    is_passing = connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] or connection.queries_logged
    if connection.vendor != "postgresql" or is_passing:
        with connection.cursor() as cursor:
            yield cursor
        return
    connection.ensure_connection()
    server = connection.connection
    with connection._prepare_cursor(psycopg.Cursor(server)) as cursor:
        # Only here: it would remember the text of each other statement too, with all the values in it.
        server.prepare_threshold = _PLANNED_AFTER
        try:
            yield cursor
        finally:
            server.prepare_threshold = None


class _Run:
    """As much of a queryset as Django's iterables ask of one: they make the objects, with what belongs to them.

    Nothing in it refers to itself: the rows are gone with it, and do not wait for the garbage collector.
    """

    def __init__(self, rows: Any, compiler: Any) -> None:
        self.db, self.model = rows.db, rows.model
        self.query = SimpleNamespace(get_compiler=lambda using: compiler)
        self._known_related_objects: dict[Any, Any] = {}


_prepared: Memory[Prepared[Any]] = Memory(200)


def prepared(key: Hashable, rows: Callable[[], QuerySet[Any, T]]) -> Prepared[T]:
    return _prepared.get(key, lambda: Prepared(rows()))


def run_for(numbers: list[int], key: Hashable, rows: Callable[[list[Any]], QuerySet[Any, T]]) -> list[T]:
    """For several at once: prepared for a few sizes, the last number fills up what is left."""
    size = next((size for size in _SIZES if size >= len(numbers)), 0)
    if not size or not numbers:
        return list(rows(numbers))
    names = [f"number_{place}" for place in range(size)]
    asked = prepared((key, size), lambda: rows([Given(name, BigIntegerField()) for name in names]))
    return asked.run(**dict(zip(names, numbers + numbers[-1:] * (size - len(numbers)), strict=True)))
