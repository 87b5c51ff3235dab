"""Build the arguments of tools from the field declarations."""

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field as Argument
from pydantic import Strict

from resources_app.fields.declarations import FIELDS, Field, Type
from resources_app.vocabulary import Kind

F = TypeVar("F", bound=Callable[..., Any])
if TYPE_CHECKING:
    Status = str
else:
    Status = Literal[FIELDS[Kind.TASK]["status"].choices]
_FIELDS = FIELDS[Kind.TASK].values()
# The type of an argument, by type of field. Every other one is a string.
_TYPES: dict[Type, Any] = {
    "number": Annotated[float, Strict()],
    "words": list[str],
    "texts": list[str],
    "tasks": list[str],
    "references": list[dict[str, Any]],
}

WRITTEN = {
    name: field for field in _FIELDS if field.writable and field.is_argument for name in field.names
}
FILTERED = {field.filter_name or field.name: field for field in _FIELDS if field.is_list_argument}


def field_arguments(fields: dict[str, Field], **notes: str) -> Callable[[F], F]:
    """Replace `**fields` of a tool by one optional argument per declared field.

    They follow the positional arguments. A field that the method names itself is left out. `notes`
    describes arguments that models get wrong.
    """

    def add(method: F) -> F:
        own = list(inspect.signature(method).parameters.values())
        named = {parameter.name for parameter in own}
        made = [
            _parameter(name, field, notes.get(name))
            for name, field in fields.items()
            if name not in named
        ]
        method.__tool_parameters__ = [  # type: ignore[attr-defined]
            *_of_kind(own, inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *made,
            *_of_kind(own, inspect.Parameter.KEYWORD_ONLY),
        ]
        return method

    return add


def _of_kind(parameters: Iterable[inspect.Parameter], kind: Any) -> list[inspect.Parameter]:
    return [parameter for parameter in parameters if parameter.kind is kind]


def _parameter(name: str, field: Field, note: str | None) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[_type_of(name, field) | None, Argument(**_described(field, note))],
    )


def _type_of(name: str, field: Field) -> Any:
    if field.choices:
        return Literal[field.choices]
    return str if name == field.filter_name else _TYPES.get(field.type, str)


def _described(field: Field, note: str | None) -> dict[str, Any]:
    limits = {"minimum": field.minimum, "maximum": field.maximum}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return ({"description": note} if note else {}) | ({"json_schema_extra": given} if given else {})
