"""The rows of the index as SQL. Every write runs these statements; making them with the ORM took longer than all the rest."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from search_app.models import Document

_TABLE = Document._meta.db_table
_FIELDS = [field for field in Document._meta.concrete_fields if not field.primary_key]
_KEY = ("slot", "kind", "object_id")
_ROW = f"({', '.join(['%s'] * len(_FIELDS))})"
_COLUMNS = [str(field.column) for field in _FIELDS]
_UPDATES = ", ".join(f"{column} = EXCLUDED.{column}" for column in _COLUMNS if column not in _KEY)
_BY_NAME = {field.attname: field for field in _FIELDS}


def put(documents: Sequence[Document]) -> list[int]:
    """Inserted, or in place of the row of the same thing. Gives their ids in the same order."""
    if not documents:
        return []
    values = [_stored(field, getattr(document, field.attname)) for document in documents for field in _FIELDS]
    rows = ", ".join([_ROW] * len(documents))
    sql = (
        f"INSERT INTO {_TABLE} ({', '.join(_COLUMNS)}) VALUES {rows}"  # noqa: S608
        f" ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {_UPDATES} RETURNING id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [number for (number,) in cursor.fetchall()]


def renew(slot: str, kind: str, object_id: int, columns: dict[str, Any], *, was: int) -> bool:
    """Other columns for a row whose text stays. False when it does not hold the version before: then it is stale."""
    assigned = ", ".join(f"{_BY_NAME[name].column} = %s" for name in columns)
    sql = f"UPDATE {_TABLE} SET {assigned} WHERE slot = %s AND kind = %s AND object_id = %s AND version = %s"  # noqa: S608
    values = [_stored(_BY_NAME[name], value) for name, value in columns.items()]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, slot, kind, object_id, was])
        return bool(cursor.rowcount)


def _stored(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection)
