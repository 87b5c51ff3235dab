"""Offer an input for each declared field that the pages do not draw themselves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from resources_app.fields.cleaning import parse_number
from resources_app.fields.declarations import FIELDS, Field, writable_fields
from resources_app.vocabulary import Kind

# The templates have markup for these.
_DRAWN = frozenset(
    {"title", "description", "status", "priority", "assignee", "epic_id", "due_date"}
)
_INPUT_TYPES = {"number": "number", "date": "date"}


@dataclass(frozen=True)
class Input:
    field: Field
    value: Any = None
    etag: str = ""

    @property
    def type(self) -> str:
        return _INPUT_TYPES.get(self.field.type, "text")

    @property
    def step(self) -> str:
        """Return the smallest difference between two values of a number."""
        return str(10**-self.field.decimals)


def single_values(kind: str) -> list[Field]:
    """Return the fields that a form saves as one value each."""
    return [field for field in writable_fields(kind) if field.shape != "array"]


def inputs(
    kind: str, item: Mapping[str, Any] | None = None, etags: Mapping[str, str] | None = None
) -> list[Input]:
    return [
        Input(field, (item or {}).get(field.name), (etags or {}).get(field.name, ""))
        for field in single_values(kind)
        if field.name not in _DRAWN
    ]


def typed_value(name: str, text: str) -> Any:
    """Return the value that a form sent. An empty input clears a field, except for a text."""
    field = FIELDS[Kind.TASK].get(name)
    if field is not None and field.shape == "text":
        return text
    if field is not None and field.type == "number":
        number = parse_number(text)
        return text or None if number is None else number
    return text or None
