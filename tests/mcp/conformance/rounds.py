"""Define calls that need several rounds: the server answers with questions, the client calls again
with the answers.
"""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver import Context
from mcp.types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

Questions = dict[str, Any]


def ask(message: str, field: str, kind: str = "string") -> ElicitRequest:
    schema = {"type": "object", "properties": {field: {"type": kind}}, "required": [field]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(text: str, max_tokens: int) -> CreateMessageRequest:
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=messages, max_tokens=max_tokens)
    )


def need(questions: Questions, state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions, request_state=state)


def answers(ctx: Context) -> dict[str, Any]:
    return dict(ctx.input_responses or {})


def one_round(
    questions: Questions, conclude: Callable[[dict[str, Any]], str], state: str | None = None
) -> Any:
    async def tool(ctx: Context) -> str | InputRequiredResult:
        given = answers(ctx)
        if not all(_is_answered(given.get(key)) for key in questions):
            return need(questions, state)
        if state is not None and ctx.request_state != state:
            return need(questions, state)
        return conclude(given)

    return tool


def _is_answered(answer: Any) -> bool:
    return answer is not None and getattr(answer, "action", "accept") == "accept"


def _text_of(answer: Any) -> str:
    content = answer.content
    return content.text if isinstance(content, TextContent) else str(content)


async def multi_round(ctx: Context) -> str | InputRequiredResult:
    given = answers(ctx)
    if ctx.request_state == "second" and "step2" in given:
        return "both steps are done"
    if ctx.request_state == "first" and "step1" in given:
        return need({"step2": ask("Step 2: What is your favorite color?", "color")}, "second")
    return need({"step1": ask("Step 1: What is your name?", "name")}, "first")


async def capabilities(ctx: Context) -> str | InputRequiredResult:
    declared = ctx.session.client_capabilities or ClientCapabilities()
    questions: Questions = {}
    if declared.sampling is not None:
        questions["sampled"] = sample("Say something", 50)
    if declared.elicitation is not None:
        questions["asked"] = ask("What is your name?", "name")
    return need(questions) if questions and not answers(ctx) else "nothing to ask"


async def prompt(ctx: Context) -> list[dict[str, Any]] | InputRequiredResult:
    """A prompt that needs an answer"""
    given = answers(ctx).get("user_context")
    if given is None:
        return need({"user_context": ask("What context should the prompt use?", "context")})
    return [{"role": "user", "content": {"type": "text", "text": f"Use {given.content}"}}]


NAME = {"user_name": ask("What is your name?", "name")}
TOOLS: dict[str, Any] = {
    "elicitation": one_round(NAME, lambda given: f"Hello, {given['user_name'].content['name']}!"),
    "sampling": one_round(
        {"capital_question": sample("What is the capital of France?", 100)},
        lambda given: _text_of(given["capital_question"]),
    ),
    "list_roots": one_round(
        {"client_roots": ListRootsRequest()},
        lambda given: " ".join(str(root.uri) for root in given["client_roots"].roots),
    ),
    "request_state": one_round(
        {"confirm": ask("Please confirm", "ok", "boolean")}, lambda _: "state-ok", "kept"
    ),
    "multiple_inputs": one_round(
        NAME | {"greeting": sample("Generate a greeting", 50), "client_roots": ListRootsRequest()},
        lambda _: "all three are here",
        "kept",
    ),
    "multi_round": multi_round,
    "tampered_state": one_round(
        {"confirm": ask("Please confirm", "ok", "boolean")}, lambda _: "intact", "kept"
    ),
    "capabilities": capabilities,
}


def register(server: Any) -> None:
    for name, tool in TOOLS.items():
        server.tool(
            name=f"test_input_required_result_{name}", description=f"Needs another round: {name}"
        )(tool)
    server.tool(name="test_streaming_elicitation", description="Needs another round")(
        TOOLS["elicitation"]
    )
    server.prompt(name="test_input_required_result_prompt")(prompt)
