"""Configure the server object of django-mcp-server. Everything it serves is registered here."""

from typing import Any

import mcp.types as protocol
from mcp import MCPError
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from mcp_server import mcp_server as published

from backlog_site.mcp import prompts, resources, subscribing, usage
from backlog_site.mcp.auth import caller_with
from backlog_site.mcp.context import Caller, acting_as, current_actor, current_request
from backlog_site.mcp.errors import translate_errors
from backlog_site.serving.database_threads import in_thread
from resources_app.errors import ValidationFailed

MAX_AGENT = 100
UNAUTHENTICATED = -32001
# Lists that are always returned whole.
ONE_PAGE = frozenset({"tools/list", "prompts/list", "resources/templates/list"})

# The package's object, for toolsets and prompts, and the SDK's server below it, for request
# handlers.
toolsets = published
low_level: Server[Any] = published._mcp_server


def install() -> None:
    """Import the toolsets and add handlers.

    Called once, before the package registers the toolsets.
    """
    from backlog_site.mcp import tools  # noqa: F401, PLC0415  # the package publishes every toolset class it has seen

    resources.install(low_level)
    prompts.install(toolsets)
    low_level.title = "Backlog"
    low_level.version = "1"
    low_level.middleware.extend([translate_errors, act_for_caller, refuse_unknown_params])
    low_level.add_request_handler("tools/list", protocol.PaginatedRequestParams, list_tools)
    low_level.add_request_handler("tools/call", protocol.CallToolRequestParams, call_tool)
    low_level.add_request_handler(
        "prompts/get", protocol.GetPromptRequestParams, prompts.get_prompt
    )
    low_level.add_request_handler(
        "resources/subscribe", protocol.SubscribeRequestParams, subscribing.subscribe
    )
    low_level.add_request_handler(
        "resources/unsubscribe", protocol.UnsubscribeRequestParams, subscribing.unsubscribe
    )
    low_level.add_request_handler(
        "subscriptions/listen", protocol.SubscriptionsListenRequestParams, subscribing.listen
    )
    low_level.add_request_handler("server/discover", protocol.RequestParams, discover)
    # Responses that are the same for every user may be shared; user-specific ones may not.
    for method in ("server/discover", "prompts/list", "resources/templates/list"):
        low_level.cache_hints[method] = CacheHint(ttl_ms=60_000, scope="public")
    low_level.cache_hints["tools/list"] = CacheHint(ttl_ms=60_000, scope="private")
    for method in ("resources/list", "resources/read"):
        low_level.cache_hints[method] = CacheHint(ttl_ms=2_000, scope="private")


async def list_tools(
    _ctx: ServerRequestContext, _params: protocol.PaginatedRequestParams | None
) -> protocol.ListToolsResult:
    """List the tools.

    Omits write tools when scope or role does not allow writing, so that agents do not try them.
    """
    tools = await toolsets.list_tools()
    if not await in_thread(lambda actor: actor.may_write, current_actor()):
        tools = [tool for tool in tools if tool.annotations and tool.annotations.read_only_hint]
    return protocol.ListToolsResult(tools=tools)


async def call_tool(
    ctx: ServerRequestContext, params: protocol.CallToolRequestParams
) -> protocol.CallToolResult | protocol.InputRequiredResult:
    """Call a tool. An unknown tool is a protocol error, not a tool result."""
    if toolsets._tool_manager.get_tool(params.name) is None:
        known = [tool.name for tool in await toolsets.list_tools()]
        raise ValidationFailed(
            f"There is no tool {params.name!r}.",
            field="name",
            value=params.name,
            allowed_values=known,
        )
    called: (
        protocol.CallToolResult | protocol.InputRequiredResult
    ) = await toolsets._handle_call_tool(ctx, params)
    return called


async def discover(
    ctx: ServerRequestContext, _params: protocol.RequestParams
) -> protocol.DiscoverResult:
    """Describe the server.

    The SDK's own version would promise notices for tools and prompts, which never change at
    runtime.
    """
    capabilities = low_level.get_capabilities(protocol_version=ctx.protocol_version)
    for fixed in (capabilities.tools, capabilities.prompts):
        if fixed:
            fixed.list_changed = False
    return protocol.DiscoverResult(
        supported_versions=list(MODERN_PROTOCOL_VERSIONS),
        capabilities=capabilities,
        instructions=low_level.instructions,
    )


async def act_for_caller(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult:
    """Bind the caller's actor, as a middleware, for `current_actor()`."""
    request = current_request()
    caller: Caller | None = request.caller
    if not request.is_authenticated:
        caller = await caller_with(request.caller.secret)
    if caller is None:
        raise MCPError(UNAUTHENTICATED, "The token is no longer valid.")
    how = {"agent": _agent(ctx), "request_id": request.request_id, "address": request.address}
    actor = caller.credential.actor("mcp", **how)
    if usage.is_due(caller.credential):
        await in_thread(usage.note, caller.credential)
    with acting_as(actor):
        return await call_next(ctx)


async def refuse_unknown_params(ctx: ServerRequestContext, call_next: CallNext) -> HandlerResult:
    """Reject, as a middleware, parameters that no handler reads and cursors for single-page
    lists.
    """
    params, handler = ctx.params or {}, low_level.get_request_handler(ctx.method)
    if handler and handler.params_type.model_config.get("extra") != "allow":
        known = [field.alias or name for name, field in handler.params_type.model_fields.items()]
        if unknown := sorted(set(params) - set(known)):
            raise ValidationFailed(
                f"{ctx.method} has no parameter {unknown[0]!r}.",
                field=unknown[0],
                allowed_values=known,
            )
    if ctx.method in ONE_PAGE and params.get("cursor"):
        raise ValidationFailed(
            f"{ctx.method} answers one page, so there is no cursor.",
            field="cursor",
            value=params["cursor"],
        )
    return await call_next(ctx)


def _agent(ctx: ServerRequestContext) -> str:
    """Return the client's self-reported name. Without one, the credential's name applies."""
    client = ctx.session.client_params
    name = client.client_info.name if client else ""
    return "".join(filter(str.isprintable, name)).strip()[:MAX_AGENT]
