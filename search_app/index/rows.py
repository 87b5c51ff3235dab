"""Read and write index rows with SQL.

Every write and search runs these statements; building them with the ORM took longer.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from django.db import connection

from resources_app.models import Change
from search_app.backends import backend
from search_app.backends.base import Text
from search_app.models import SLOTS, Document, IndexState, Passage

_TABLE = Document._meta.db_table
_NEWEST = f"SELECT max(id) FROM {_TABLE}"  # noqa: S608
_LIVE = f"SELECT live FROM {IndexState._meta.db_table} ORDER BY id LIMIT 1"  # noqa: S608
_STATE = (
    f"SELECT ({_LIVE}), ({_NEWEST}), (SELECT max(id) FROM {Change._meta.db_table}),"  # noqa: S608
    f" (SELECT max(id) FROM {Passage._meta.db_table})"
)
_FIELDS = [field for field in Document._meta.concrete_fields if not field.primary_key]
_KEY = ("slot", "kind", "object_id")
_COLUMNS = {str(field.column): "%s" for field in _FIELDS}
_BY_NAME = {field.attname: field for field in _FIELDS}


def put(documents: Sequence[tuple[Document, Text]]) -> list[int]:
    """Insert the documents, or replace the rows of the same objects.

    Return their ids in the same order.
    """
    if not documents:
        return []
    values = [value for document, text in documents for value in _values(document, text)]
    with connection.cursor() as cursor:
        cursor.execute(_put_sql(len(documents)), values)
        return [number for (number,) in cursor.fetchall()]


def _put_sql(count: int) -> str:
    columns = {**_COLUMNS, **backend().text_columns}
    rows = ", ".join([f"({', '.join(columns.values())})"] * count)
    updates = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns if column not in _KEY)
    return (
        f"INSERT INTO {_TABLE} ({', '.join(columns)}) VALUES {rows}"  # noqa: S608
        f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {updates} RETURNING id"
    )


def _values(document: Document, text: Text) -> list[Any]:
    columns = [_stored(field, getattr(document, field.attname)) for field in _FIELDS]
    return [*columns, *backend().text_values(text)]


def renew(slot: str, kind: str, object_id: int, columns: dict[str, Any], *, was: int) -> int:
    """Update columns of a row whose text stays.

    Return its id, or 0 if the row is stale because it lacks the previous version.
    """
    assigned = ", ".join(f"{_BY_NAME[name].column} = %s" for name in columns)
    sql = (
        f"UPDATE {_TABLE} SET {assigned}"  # noqa: S608
        " WHERE slot = %s AND kind = %s AND object_id = %s AND version = %s RETURNING id"
    )
    values = [_stored(_BY_NAME[name], value) for name, value in columns.items()]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, slot, kind, object_id, was])
        row = cursor.fetchone()
        return int(row[0]) if row else 0


def newest() -> int:
    """Return the highest id."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST)
        return int(cursor.fetchone()[0] or 0)


def live_slot() -> str:
    """Return the slot in use."""
    with connection.cursor() as cursor:
        cursor.execute(_LIVE)
        return str((cursor.fetchone() or SLOTS)[0])


def live_state() -> tuple[str, str]:
    """Return the slot in use and a fingerprint of the index state.

    Every write adds a change, every new text a row, every embedding a passage. Equal fingerprints
    therefore mean the same index.
    """
    with connection.cursor() as cursor:
        cursor.execute(_STATE)
        slot, *newest = cursor.fetchone()
    name = hashlib.blake2b(repr((slot, newest)).encode(), digest_size=6).hexdigest()
    return str(slot or SLOTS[0]), name


def _stored(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection)
