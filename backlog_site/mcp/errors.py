"""Translate domain errors into protocol errors, for everything except tool results."""

import mcp.types as protocol
from django.db import DatabaseError, InterfaceError
from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from resources_app.database.schema import refusal_of
from resources_app.errors import (
    BacklogError,
    InvalidOperation,
    InvalidUri,
    NotFound,
    ValidationFailed,
)

LEGACY_RESOURCE_NOT_FOUND = -32002
SERVER_ERROR = -32000
_CALLERS_MISTAKE = (NotFound, InvalidUri, ValidationFailed, InvalidOperation)


def protocol_error(error: BacklogError, protocol_version: str) -> MCPError:
    code = protocol.INVALID_PARAMS if isinstance(error, _CALLERS_MISTAKE) else SERVER_ERROR
    if isinstance(error, NotFound) and protocol_version not in MODERN_PROTOCOL_VERSIONS:
        code = LEGACY_RESOURCE_NOT_FOUND
    return MCPError(code, error.message, error.as_json() | {"uri": error.details.get("uri")})


async def translate_errors(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult:
    """Translate errors, as a middleware of the server."""
    try:
        return await call_next(ctx)
    except BacklogError as error:
        raise protocol_error(error, ctx.protocol_version) from error
    except (DatabaseError, InterfaceError) as error:
        refused = refusal_of(error)
        if refused is None:
            raise
        raise protocol_error(refused, ctx.protocol_version) from error
