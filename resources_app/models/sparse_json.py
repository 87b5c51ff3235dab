"""Define a JSON field for columns that are mostly empty and read in pages of rows."""

from typing import Any

from django.db import models

_EMPTY: dict[Any, type] = {"[]": list, "{}": dict}


class SparseJSONField(models.JSONField):
    """Skip JSON parsing for empty values.

    For the database and migrations it is Django's JSONField.
    """

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        empty = _EMPTY.get(value)
        return empty() if empty else super().from_db_value(value, expression, connection)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
