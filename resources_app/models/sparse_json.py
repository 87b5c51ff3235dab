"""JSON columns of which most are empty, in rows that are read by the page."""

from typing import Any

from django.db import models

_EMPTY: dict[Any, type] = {"[]": list, "{}": dict}


class SparseJSONField(models.JSONField):
    """To the database and to migrations it is Django's own; it only asks no parser about what is empty."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        empty = _EMPTY.get(value)
        return empty() if empty else super().from_db_value(value, expression, connection)

    def deconstruct(self) -> Any:
        name, _, args, kwargs = super().deconstruct()
        return name, "django.db.models.JSONField", args, kwargs
