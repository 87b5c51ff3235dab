"""Define tools, resources and prompts with the names and answers that the suite's scenarios
describe.
"""

import asyncio
from typing import Annotated, Any

import mcp.types as protocol
from mcp import MCPError
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    ClientCapabilities,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from mcp_server import mcp_server as server
from pydantic import BaseModel, Field

from backlog_site.mcp.bus import bus
from tests.mcp.conformance import rounds

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
PAUSE = 0.05
low_level = server._mcp_server


@server.tool()
def test_simple_text() -> str:
    """Answers a text"""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> list[ImageContent]:
    """Answers an image"""
    return [ImageContent(data=PIXEL, mime_type="image/png")]


@server.tool()
def test_audio_content() -> list[AudioContent]:
    """Answers a sound"""
    return [AudioContent(data=SILENCE, mime_type="audio/wav")]


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


@server.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    """Answers a resource"""
    return [
        _embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ]


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Answers a text, an image and a resource"""
    return [
        TextContent(text="Multiple content types test:"),
        ImageContent(data=PIXEL, mime_type="image/png"),
        _embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs while it runs"""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await asyncio.sleep(PAUSE)
    return "logged"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Logs, to clients that want it"""
    await ctx.info("a message")
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress"""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
        await asyncio.sleep(PAUSE)
    return "done"


@server.tool()
def test_error_handling() -> str:
    """Always fails"""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    """Answers after a while"""
    await ctx.info("before")
    await asyncio.sleep(4 * PAUSE)
    return "Reconnection test completed"


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Asks the client's model"""
    messages = [SamplingMessage(role="user", content=TextContent(text=prompt))]
    result = await ctx.session.create_message(
        messages=messages, max_tokens=100, related_request_id=ctx.request_id
    )
    return f"LLM response: {result.content.text}"


class Person(BaseModel):
    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field("active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


OPTIONS = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]


class Enums(BaseModel):
    untitledSingle: str = Field(json_schema_extra={"enum": OPTIONS})
    titledSingle: str = Field(json_schema_extra={"oneOf": TITLED})
    legacyEnum: str = Field(
        json_schema_extra={"enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]}
    )
    untitledMulti: list[str] = Field(
        json_schema_extra={"items": {"type": "string", "enum": OPTIONS}}
    )
    titledMulti: list[str] = Field(json_schema_extra={"items": {"anyOf": TITLED}})


async def _elicit(ctx: Context, message: str, schema: type[BaseModel]) -> str:
    result = await ctx.elicit(message=message, schema=schema)
    content = result.data.model_dump_json() if result.action == "accept" else "{}"
    return f"Elicitation completed: action={result.action}, content={content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Asks the user"""
    return await _elicit(ctx, message, Person)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks the user, with defaults"""
    return await _elicit(ctx, "Please provide user information", Defaults)


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks the user to choose"""
    return await _elicit(ctx, "Please choose", Enums)


@server.tool()
def test_missing_capability(ctx: Context) -> str:
    """Needs a client that can sample"""
    declared = ctx.session.client_capabilities or ClientCapabilities()
    if declared.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(protocol.MISSING_REQUIRED_CLIENT_CAPABILITY, "Sampling is needed", needed)
    return "ok"


@server.tool()
def test_custom_headers(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    query: str = "",
) -> str:
    """Has an argument that travels in a header too"""
    return f"{region} {query}"


@server.tool()
def json_schema_2020_12_tool() -> str:
    """Tool with JSON Schema 2020-12 features"""
    return "ok"


server._tool_manager.get_tool("json_schema_2020_12_tool").parameters = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

rounds.register(server)

TEXTS = {
    "test://static-text": "This is the content of the static text resource.",
    "test://watched-resource": "Watched resource content",
}
BINARY = "test://static-binary"
TEMPLATE = "test://template/{id}/data"
_site_read = low_level.get_request_handler("resources/read").handler
_site_list = low_level.get_request_handler("resources/list").handler
_site_templates = low_level.get_request_handler("resources/templates/list").handler


def _contents(uri: str) -> list[Any]:
    if uri in TEXTS:
        return [TextResourceContents(uri=uri, mime_type="text/plain", text=TEXTS[uri])]
    if uri == BINARY:
        return [protocol.BlobResourceContents(uri=uri, mime_type="image/png", blob=PIXEL)]
    number = uri.removeprefix("test://template/").removesuffix("/data")
    text = f'{{"id":"{number}","templateTest":true,"data":"Data for ID: {number}"}}'
    return [TextResourceContents(uri=uri, mime_type="application/json", text=text)]


async def read(ctx: Any, params: protocol.ReadResourceRequestParams) -> Any:
    if params.uri in {*TEXTS, BINARY} or params.uri.startswith("test://template/"):
        return protocol.ReadResourceResult(contents=_contents(params.uri))
    return await _site_read(ctx, params)


async def list_resources(ctx: Any, params: Any) -> Any:
    page = await _site_list(ctx, params)
    own = [protocol.Resource(uri=uri, name=uri.removeprefix("test://")) for uri in (*TEXTS, BINARY)]
    return page.model_copy(update={"resources": [*own, *page.resources]})


async def list_templates(ctx: Any, params: Any) -> Any:
    page = await _site_templates(ctx, params)
    own = [protocol.ResourceTemplate(uri_template=TEMPLATE, name="template")]
    return page.model_copy(update={"resource_templates": [*own, *page.resource_templates]})


async def complete(_ctx: Any, _params: Any) -> protocol.CompleteResult:
    return protocol.CompleteResult(
        completion=protocol.Completion(values=["test"], total=1, has_more=False)
    )


async def set_level(_ctx: Any, _params: Any) -> protocol.EmptyResult:
    return protocol.EmptyResult()


low_level.add_request_handler("resources/read", protocol.ReadResourceRequestParams, read)
low_level.add_request_handler("resources/list", protocol.PaginatedRequestParams, list_resources)
low_level.add_request_handler(
    "resources/templates/list", protocol.PaginatedRequestParams, list_templates
)
low_level.add_request_handler("completion/complete", protocol.CompleteRequestParams, complete)
low_level.add_request_handler("logging/setLevel", protocol.SetLevelRequestParams, set_level)
_site_may_watch = bus.rules.may_watch
bus.rules.may_watch = lambda actor, uri: uri.startswith("test://") or _site_may_watch(actor, uri)


def _said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": {"type": "text", "text": text}}


@server.prompt()
def test_simple_prompt() -> list[dict[str, Any]]:
    """A prompt without arguments"""
    return [_said("This is a simple prompt for testing.")]


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> list[dict[str, Any]]:
    """A prompt with arguments"""
    return [_said(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[dict[str, Any]]:
    """A prompt with a resource"""
    resource = {
        "uri": resourceUri,
        "mimeType": "text/plain",
        "text": "Embedded resource content for testing.",
    }
    return [
        {"role": "user", "content": {"type": "resource", "resource": resource}},
        _said("Please process the embedded resource above."),
    ]


@server.prompt()
def test_prompt_with_image() -> list[dict[str, Any]]:
    """A prompt with an image"""
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    return [{"role": "user", "content": image}, _said("Please analyze the image above.")]
