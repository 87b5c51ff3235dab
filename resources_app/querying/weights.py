"""Limit the size of pages whose rows may hold megabytes each.

A page ends where its texts exceed a limit, and heavy rows are read one by one. A usual page still
takes one query. That query omits the texts of rows heavier than LIGHT, so a page of 200 rows cannot
load 400 MB into the process before it is cut.
"""

from collections.abc import Sequence
from typing import Any

from django.db.models import Case, F, Func, IntegerField, QuerySet, Value, When
from django.db.models.functions import Coalesce

# Characters on SQLite, bytes on PostgreSQL: the length each computes without reading the text
# twice.
LIGHT = 50_000
MAX_ANSWER = 4_000_000
_PREFIX = "light_"

Rows = QuerySet[Any]


class _Length(Func):
    output_field = IntegerField()

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(compiler, connection, template="length(%(expressions)s)", **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return super().as_sql(
            compiler, connection, template="octet_length((%(expressions)s)::text)", **extra
        )


def lightened(rows: Rows, columns: Sequence[str], texts: Sequence[str] = ()) -> Rows:
    """Annotate each row with the weight of `columns`, and omit those columns from heavy rows.

    The other columns of `texts` are omitted from every row.
    """
    weight: Any = sum((Coalesce(_Length(name), 0) for name in columns), Value(0))
    fields = {name: rows.model._meta.get_field(name) for name in columns}
    light = {
        f"{_PREFIX}{name}": Case(When(weight__lte=LIGHT, then=F(name)), output_field=field)
        for name, field in fields.items()
    }
    lightened_rows: Rows = rows.annotate(weight=weight, **light).defer(*columns, *texts)
    return lightened_rows


def first_within(rows: Sequence[Any]) -> int:
    """Return how many of the rows fit into a response; the first always does."""
    room = MAX_ANSWER
    for position, row in enumerate(rows):
        room -= row.weight
        if room < 0 and position:
            return position
    return len(rows)


def complete(rows: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    """Fill in the texts of the rows. A heavy row that was deleted in the meantime is dropped."""
    return [row for row in rows if _complete(row, columns)]


def _complete(row: Any, columns: Sequence[str]) -> bool:
    if row.weight <= LIGHT:
        for name in columns:
            setattr(row, name, getattr(row, f"{_PREFIX}{name}"))
        return True
    try:
        row.refresh_from_db()
    except type(row).DoesNotExist:
        return False
    return True
