"""Measure the token cost of one edit: sending the changed line, against reading and writing the
whole text.
"""

import functools
import json
import statistics
from importlib.metadata import version
from typing import Any

import httpx
from splintr import Tokenizer

from bench import texts
from bench.calls import Call, ask
from bench.mcp import mcp
from bench.rows import uri_of

VOCABULARY = "o200k_base"
# The vocabulary is inside the wheel; tiktoken would download it on first use. The counts are the
# same.
COUNTER = f"{VOCABULARY}, splintr-rs {version('splintr-rs')}"
DESCRIPTION = 5_000
EDITS = 10


@functools.cache
def _tokenizer() -> Any:
    return Tokenizer.from_pretrained(VOCABULARY)


def count_tokens(text: str) -> int:
    return len(_tokenizer().encode_ordinary(text))


def tools_list_tokens(client: httpx.Client) -> int:
    tools = ask(client, mcp("tools/list")).json()["result"]["tools"]
    return count_tokens(json.dumps(tools, separators=(",", ":"), ensure_ascii=False))


def edit_tokens(client: httpx.Client) -> dict[str, Any]:
    """Return the mean over some lines, each edited in both ways."""
    text = texts.markdown(DESCRIPTION, DESCRIPTION)
    created = ask(
        client, Call("/api/v1/tasks/", {"title": "A long description", "description": text})
    ).json()
    lines = [line for line in text.split("\n") if line.startswith("- ") and text.count(line) == 1]
    edited = lines[:: len(lines) // EDITS][:EDITS]
    by_line = _mean([_by_line(client, created["id"], line) for line in edited])
    whole = _mean([_whole(client, created["id"], line) for line in edited])
    ratio = round(whole["tokens"] / by_line["tokens"], 1)
    return {
        "edit_tokens": {"write": by_line, "read_all_write_all": whole},
        "edit_token_ratio": ratio,
    }


def _by_line(client: httpx.Client, ref: str, line: str) -> dict[str, int]:
    """Count a line edit.

    The agent has the text and its ETag from an earlier read or from its last write.
    """
    uri = uri_of(ref, "description")
    etag = ask(client, Call(f"/api/v1/resource/?uri={uri}")).json()["etag"]
    operation = {"type": "str_replace", "old_str": line, "new_str": f"{line} Done on Monday."}
    answer = ask(client, Call("/api/v1/write/", {"uri": uri, "operation": operation, "etag": etag}))
    return _counted(sent=_body(answer), received=answer.text)


def _whole(client: httpx.Client, ref: str, line: str) -> dict[str, int]:
    path = f"/api/v1/tasks/{ref}/"
    read = ask(client, Call(path))
    text = read.json()["description"].replace(line, f"{line} And on Tuesday.")
    answer = ask(client, Call(path, {"description": text}, "PATCH"))
    return _counted(sent=_body(answer), received=read.text + answer.text)


def _body(answer: httpx.Response) -> str:
    return answer.request.content.decode()


def _counted(sent: str, received: str) -> dict[str, int]:
    tokens = {"sent": count_tokens(sent), "received": count_tokens(received)}
    return tokens | {"tokens": sum(tokens.values())}


def _mean(edits: list[dict[str, int]]) -> dict[str, float]:
    return {name: round(statistics.mean(edit[name] for edit in edits), 1) for name in edits[0]}
