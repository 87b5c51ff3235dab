"""Extend the package's toolset with titles and annotations, lean schemas, and errors that a model
can fix.
"""

import functools
import inspect
import json
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any, TypeVar, cast

from django.db import DatabaseError, InterfaceError
from mcp import MCPError
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from mcp_server import MCPToolset
from mcp_server import mcp_server as published
from pydantic import ValidationError

from backlog_site.serving.database_threads import in_thread
from backlog_site.serving.metrics import measured_tool
from resources_app.database.schema import refusal_of
from resources_app.errors import BacklogError, ValidationFailed

F = TypeVar("F", bound=Callable[..., Any])
Schema = dict[str, Any]


class Null(Enum):
    """Represent an explicit null, as opposed to None for an omitted argument.

    See `tool(null_clears=…)`.
    """

    SENT = "null"


def tool(title: str, *, null_clears: Collection[str] = (), **hints: bool) -> Callable[[F], F]:
    """Mark a method of a toolset as a tool: `@tool("Search the backlog", read_only_hint=True)`.

    An argument named in `null_clears` arrives as `Null.SENT` when the caller sent null.
    """

    def mark(method: F) -> F:
        annotations = ToolAnnotations.model_validate({"title": title, **hints})
        method.__mcp_tool__ = (title, annotations, frozenset(null_clears))  # type: ignore[attr-defined]
        return method

    return mark


def documented(**parts: str) -> Callable[[F], F]:
    """Fill {names} in the docstring below with values from the code."""

    def fill(method: F) -> F:
        method.__doc__ = (method.__doc__ or "").format(**parts)
        return method

    return fill


class CarefulTool(Tool):
    """Reject unknown arguments by name, accept objects sent as JSON text, and return domain errors
    unchanged.
    """

    null_clears: frozenset[str] = frozenset()

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        with measured_tool(self.name) as note:
            return await self._run(arguments, context, convert_result, note)

    async def _run(
        self,
        arguments: dict[str, Any],
        context: Any,
        convert_result: bool,
        note: Callable[[str], None],
    ) -> Any:
        given = {self.context_kwarg: context} if self.context_kwarg else {}
        try:
            result = await self.fn(**self.checked(arguments), **given)
        except BacklogError as error:
            note(error.code)
            return error_result(error)
        except (DatabaseError, InterfaceError) as error:
            refused = refusal_of(error)
            if refused is None:
                raise UnexpectedToolError(f"Error executing tool {self.name}") from error
            note(refused.code)
            return error_result(refused)
        except (MCPError, ToolError):
            raise
        except Exception as error:  # the edge: details of an unexpected error stay in the log
            raise UnexpectedToolError(f"Error executing tool {self.name}") from error
        if not isinstance(result, dict):
            note("ok")
            return self.fn_metadata.convert_result(result) if convert_result else result
        note(_code(result))
        return answer(result) if convert_result else result

    def checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        known = list(self.parameters["properties"])
        if unknown := sorted(set(arguments) - set(known)):
            raise ValidationFailed(
                f"{self.name} has no argument {unknown[0]!r}.",
                field=unknown[0],
                allowed_values=known,
            )
        try:
            return self._validated(arguments)
        except ValidationError as error:
            parsed = arguments | {
                name: from_json(arguments[name]) for name in _failing(error) & set(arguments)
            }
        try:
            return self._validated(parsed)
        except ValidationError as error:
            raise self._refusal(arguments, error) from None

    def _refusal(self, arguments: dict[str, Any], error: ValidationError) -> ValidationFailed:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = str(first["loc"][0])
        details: dict[str, Any] = {"value": arguments[field]} if field in arguments else {}
        if allowed := _choices(self.parameters["properties"].get(field, {})):
            details["allowed_values"] = allowed
        return ValidationFailed(f"{self.name}: {field}: {first['msg']}.", field=field, **details)

    def _validated(self, arguments: dict[str, Any]) -> dict[str, Any]:
        validated = self.fn_metadata.arg_model.model_validate(arguments).model_dump_one_level()
        sent = {
            name: Null.SENT for name in self.null_clears & set(arguments) if arguments[name] is None
        }
        return validated | sent


def checked_arguments(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Validate the arguments as the named tool does."""
    checked: dict[str, Any] = published._tool_manager.get_tool(name).checked(arguments)
    return checked


def error_result(error: BacklogError) -> CallToolResult:
    """Return the error as a tool result, so that the model reads it and can correct its call."""
    return answer({"error": error.as_json()})


def answer(body: dict[str, Any]) -> CallToolResult:
    """Return a tool result, marked as an error if the body has one.

    The text is compact JSON: agents pay per token.
    """
    text = TextContent(text=json.dumps(body, ensure_ascii=False, separators=(",", ":")))
    return CallToolResult(content=[text], structured_content=body, is_error="error" in body)


def _code(body: dict[str, Any]) -> str:
    error = body.get("error", "ok")
    return str(error["code"] if isinstance(error, dict) else error)


class Toolset(MCPToolset):  # type: ignore[misc]  # the package has no types
    """Register each method marked with `@tool` as a tool.

    Methods are plain functions that may use the database.
    """

    def _add_tools_to(self, tool_manager: ToolManager) -> list[Tool]:
        marked = [
            method
            for _, method in inspect.getmembers(self, inspect.ismethod)
            if hasattr(method, "__mcp_tool__")
        ]
        return [self._add_tool(tool_manager, method) for method in marked]

    def _add_tool(self, tool_manager: ToolManager, method: Callable[..., Any]) -> Tool:
        title, annotations, null_clears = method.__mcp_tool__  # type: ignore[attr-defined]

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await in_thread(method, *args, **kwargs)

        if parameters := getattr(method, "__tool_parameters__", None):
            own = [parameter for parameter in parameters if parameter.name != "self"]
            call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
        description = " ".join((inspect.getdoc(method) or "").split())
        tool = CarefulTool.from_function(
            call, title=title, description=description, annotations=annotations
        )
        made = cast("CarefulTool", tool)
        made.null_clears = null_clears
        made.parameters = lean(made.parameters) | {"additionalProperties": False}
        made.fn_metadata.output_schema = {"type": "object"}
        # Not through add_tool(), which would build the SDK's Tool class.
        tool_manager._tools[made.name] = made
        return made


def lean(schema: Schema) -> Schema:
    """Remove titles, "or null" and null defaults.

    Every agent pays for these tokens in every session.
    """
    if choices := schema.get("anyOf"):
        given = [choice for choice in choices if choice.get("type") != "null"]
        rest = {name: value for name, value in schema.items() if name != "anyOf"}
        return (
            lean({**given[0], **rest})
            if len(given) == 1
            else {**lean(rest), "anyOf": [lean(one) for one in given]}
        )
    return {
        name: _lean_value(name, value)
        for name, value in schema.items()
        if not _is_idle(name, value)
    }


def _lean_value(name: str, value: Any) -> Any:
    if name == "properties":
        return {key: lean(inner) for key, inner in value.items()}
    return lean(value) if isinstance(value, dict) and name != "default" else value


def _is_idle(name: str, value: Any) -> bool:
    return (
        (name == "title" and isinstance(value, str))
        or (name == "default" and value is None)
        or (name, value)
        == (
            "additionalProperties",
            True,
        )
    )


def _failing(error: ValidationError) -> set[str]:
    return {str(problem["loc"][0]) for problem in error.errors() if problem["loc"]}


def _choices(schema: Schema) -> list[Any]:
    """Return the allowed values of a parameter, or of the elements of a list."""
    inner = [schema.get("items", {}), *schema.get("anyOf", [])]
    return schema.get("enum") or next(filter(None, map(_choices, filter(None, inner))), [])


def from_json(value: Any) -> Any:
    """Parse JSON strings. Some clients send objects and lists as JSON text, even inside a list."""
    if isinstance(value, list):
        return [from_json(entry) for entry in value]
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return from_json(parsed) if isinstance(parsed, list) else parsed
