"""Implement write operations as pure functions from value to value.

Matching is literal and byte-exact, never a pattern.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal

from resources_app.editing.text import Splice, apply_splices, nearest_line
from resources_app.errors import InvalidOperation, OperationFailed, ValidationFailed

Shape = Literal["text", "scalar", "array", "object"]
Operation = Mapping[str, Any]

PREVIEW_LENGTH = 500

# Arguments of each operation: required, then optional.
ARGUMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "str_replace": (("old_str", "new_str"), ("replace_all",)),
    "insert": (("line", "content"), ()),
    "append": (("content",), ()),
    "prepend": (("content",), ()),
    "delete": (("content",), ()),
    "set": (("value",), ("field",)),
    "merge": (("value",), ()),
    "delete_field": (("field",), ()),
    "array_append": (("value",), ()),
    "array_prepend": (("value",), ()),
    "array_insert": (("index", "value"), ()),
    "array_remove": ((), ("index", "value")),
    "restore": (("version",), ()),
}
TEXT_OPERATIONS = ("str_replace", "insert", "append", "prepend", "delete")
ALLOWED: dict[Shape, tuple[str, ...]] = {
    "text": (*TEXT_OPERATIONS, "set"),
    "scalar": ("set",),
    "array": ("array_append", "array_prepend", "array_insert", "array_remove", "set"),
    "object": ("set", "merge", "delete_field"),
}


def check(operation: Any, allowed: tuple[str, ...]) -> str:
    """Return the operation's type.

    Raises if it is unknown, not allowed here or has the wrong arguments.
    """
    if not isinstance(operation, Mapping):
        raise ValidationFailed(
            "operation must be an object with a type", field="operation", value=operation
        )
    kind = operation.get("type")
    if kind not in allowed or not isinstance(kind, str):
        raise InvalidOperation(
            f"Operation {kind!r} is not supported for this resource.",
            operation=kind,
            allowed=list(allowed),
        )
    required, optional = ARGUMENTS[kind]
    given = set(operation) - {"type"}
    if missing := [name for name in required if name not in given]:
        raise ValidationFailed(
            f"{kind} needs {', '.join(missing)}.", field=missing[0], required=list(required)
        )
    if unknown := sorted(given - {*required, *optional}):
        raise ValidationFailed(
            f"{kind} does not take {', '.join(unknown)}.",
            field=unknown[0],
            allowed_values=[*required, *optional],
        )
    return kind


def apply_operation(value: Any, operation: Operation, shape: Shape) -> Any:
    kind = check(operation, ALLOWED[shape])
    if shape == "text" and kind in TEXT_OPERATIONS:
        return apply_splices(value, text_splices(value, operation))
    if shape == "object":
        return _OBJECT[kind](value, operation)
    if shape == "array" and kind != "set":
        return _ARRAY[kind](value, operation)
    return _set_value(operation)


def text_splices(text: str, operation: Operation) -> list[Splice]:
    return _TEXT[operation["type"]](text, operation)


def _set_value(operation: Operation) -> Any:
    if "field" in operation:
        raise ValidationFailed(
            "set takes 'field' on a whole object only.", field="field", allowed_values=["value"]
        )
    return operation["value"]


# Text


def string_argument(operation: Operation, name: str) -> str:
    value = operation[name]
    if not isinstance(value, str):
        raise ValidationFailed(f"{name} must be a string.", field=name, value=value)
    return value


def _integer(operation: Operation, name: str) -> int:
    value = operation[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValidationFailed(f"{name} must be a whole number.", field=name, value=value)
    return value


def _str_replace(text: str, operation: Operation) -> list[Splice]:
    old, new = string_argument(operation, "old_str"), string_argument(operation, "new_str")
    replace_all = operation.get("replace_all", False)
    if not isinstance(replace_all, bool):
        raise ValidationFailed(
            "replace_all must be true or false.", field="replace_all", value=replace_all
        )
    positions = _matches(text, old, "str_replace", "old_str", many=replace_all)
    return [(position, len(old), new) for position in positions]


def _delete(text: str, operation: Operation) -> list[Splice]:
    content = string_argument(operation, "content")
    positions = _matches(text, content, "delete", "content", many=False)
    return [(position, len(content), "") for position in positions]


def _matches(text: str, wanted: str, kind: str, argument: str, *, many: bool) -> list[int]:
    if not wanted:
        raise ValidationFailed(f"{argument} must not be empty.", field=argument, value=wanted)
    positions = _find_all(text, wanted)
    if not positions:
        raise _not_found(text, wanted, kind, argument)
    if len(positions) > 1 and not many:
        lines = [text.count("\n", 0, position) + 1 for position in positions[:20]]
        hint = " or set replace_all" if kind == "str_replace" else ""
        raise OperationFailed(
            f"{kind} failed: {argument} occurs {len(positions)} times",
            suggestion=f"Send more of the surrounding text so that it occurs once{hint}.",
            operation=kind,
            occurrences=len(positions),
            lines=lines,
        )
    return positions


def _find_all(text: str, wanted: str) -> list[int]:
    positions = []
    position = text.find(wanted)
    while position >= 0:
        positions.append(position)
        position = text.find(wanted, position + len(wanted))
    return positions


def _not_found(text: str, wanted: str, kind: str, argument: str) -> OperationFailed:
    details: dict[str, Any] = {
        "operation": kind,
        argument: wanted[:PREVIEW_LENGTH],
        "searched_content_preview": text[:PREVIEW_LENGTH],
    }
    if near := nearest_line(text, wanted):
        details["nearest_line"] = {"line": near[0], "text": near[1][:PREVIEW_LENGTH]}
    return OperationFailed(f"{kind} failed: {argument} not found", **details)


def _insert(text: str, operation: Operation) -> list[Splice]:
    """Insert whole lines of `content` after the first `line` lines."""
    line, content = _integer(operation, "line"), string_argument(operation, "content")
    total = text.count("\n") + (1 if text and not text.endswith("\n") else 0)
    if not 0 <= line <= total:
        raise OperationFailed(
            f"insert failed: line {line} is outside 0..{total}",
            operation="insert",
            line=line,
            lines=total,
        )
    position = 0
    for _ in range(line):
        found = text.find("\n", position)
        position = len(text) if found < 0 else found + 1
    if position == len(text) and text and not text.endswith("\n"):
        return [(position, 0, "\n" + content)]
    needs_break = position < len(text) and not content.endswith("\n")
    return [(position, 0, content + ("\n" if needs_break else ""))]


def _append(text: str, operation: Operation) -> list[Splice]:
    return [(len(text), 0, string_argument(operation, "content"))]


def _prepend(text: str, operation: Operation) -> list[Splice]:
    return [(0, 0, string_argument(operation, "content"))]


_TEXT: dict[str, Callable[[str, Operation], list[Splice]]] = {
    "str_replace": _str_replace,
    "insert": _insert,
    "append": _append,
    "prepend": _prepend,
    "delete": _delete,
}


# Objects


def _set_field(value: dict[str, Any], operation: Operation) -> dict[str, Any]:
    if "field" not in operation:
        raise ValidationFailed(
            "set on a whole object needs the field.", field="field", required=["field", "value"]
        )
    return {**value, string_argument(operation, "field"): operation["value"]}


def _merge(value: dict[str, Any], operation: Operation) -> dict[str, Any]:
    patch = operation["value"]
    if not isinstance(patch, Mapping):
        raise ValidationFailed("merge needs an object as value.", field="value", value=patch)
    return deep_merge(value, patch)


def _delete_field(value: dict[str, Any], operation: Operation) -> dict[str, Any]:
    field = string_argument(operation, "field")
    if field not in value:
        raise OperationFailed(
            f"delete_field failed: there is no field {field!r}", field=field, fields=sorted(value)
        )
    return {**value, field: None}


def deep_merge(value: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Merge objects key by key. Everything else, lists included, is replaced."""
    merged = dict(value)
    for key, new in patch.items():
        old = merged.get(key)
        merged[key] = (
            deep_merge(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new
        )
    return merged


_OBJECT: dict[str, Callable[[dict[str, Any], Operation], dict[str, Any]]] = {
    "set": _set_field,
    "merge": _merge,
    "delete_field": _delete_field,
}


# Arrays


def _array_append(value: list[Any], operation: Operation) -> list[Any]:
    return [*value, copy.deepcopy(operation["value"])]


def _array_prepend(value: list[Any], operation: Operation) -> list[Any]:
    return [copy.deepcopy(operation["value"]), *value]


def _array_insert(value: list[Any], operation: Operation) -> list[Any]:
    index = _integer(operation, "index")
    if not 0 <= index <= len(value):
        raise _outside("array_insert", index, f"0..{len(value)}")
    return [*value[:index], copy.deepcopy(operation["value"]), *value[index:]]


def _array_remove(value: list[Any], operation: Operation) -> list[Any]:
    if ("index" in operation) == ("value" in operation):
        raise ValidationFailed(
            "array_remove needs either index or value.", field="index", required=["index", "value"]
        )
    if "value" in operation:
        return _remove_value(value, operation["value"])
    index = _integer(operation, "index")
    if not 0 <= index < len(value):
        raise _outside("array_remove", index, f"0..{len(value) - 1}" if value else "an empty list")
    return [*value[:index], *value[index + 1 :]]


def _remove_value(value: list[Any], wanted: Any) -> list[Any]:
    if wanted not in value:
        raise OperationFailed(
            "array_remove failed: value not found", operation="array_remove", value=wanted
        )
    index = value.index(wanted)
    return [*value[:index], *value[index + 1 :]]


def _outside(kind: str, index: int, places: str) -> OperationFailed:
    return OperationFailed(
        f"{kind} failed: index {index} is outside {places}", operation=kind, index=index
    )


_ARRAY: dict[str, Callable[[list[Any], Operation], list[Any]]] = {
    "array_append": _array_append,
    "array_prepend": _array_prepend,
    "array_insert": _array_insert,
    "array_remove": _array_remove,
}
