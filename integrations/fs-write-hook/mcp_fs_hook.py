#!/usr/bin/env python3
"""A PreToolUse hook: an agent's file edit on an mcp://backlog/… path becomes a write to the
backlog, by that line alone.

Reads the hook's JSON from stdin (Claude Code: Edit, MultiEdit, Write, Read; Kiro: fs_write,
fs_read). Other paths pass. For ours it answers on stderr and exits with 2, which keeps the runtime
from touching the disk. Needs BACKLOG_TOKEN; BACKLOG_URL is http://127.0.0.1:8000 unless set.
Nothing but Python 3.9 is used.
"""

import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

PASS, TAKEN = 0, 2
PATIENCE_SECONDS = 30


class Refused(Exception):
    """What the agent should read instead of a result."""


def main() -> int:
    call = json.load(sys.stdin)
    given = call.get("tool_input") or {}
    uri = uri_in(given.get("file_path") or given.get("path") or "")
    if not uri:
        return PASS
    try:
        told = read(uri) if reads(call.get("tool_name", "")) else write(uri, operations(given))
    except Refused as refused:
        told = f"Not written. {refused}"
    sys.stderr.write(f"{told}\n")
    return TAKEN


def uri_in(path: str) -> str:
    """Runtimes make paths absolute and merge slashes: /home/me/mcp:/backlog/… means
    mcp://backlog/…
    """
    found = re.search(r"mcp:/+(backlog/.+)$", path)
    return f"mcp://{found[1]}" if found else ""


def reads(tool: str) -> bool:
    return tool.lower() in {"read", "fs_read"}


def operations(given: dict) -> list:
    """The runtime's words in ours."""
    if "edits" in given:
        return [replacement(edit) for edit in given["edits"]]
    if "old_string" in given or "old_str" in given:
        return [replacement(given)]
    text = given.get("content", given.get("file_text", given.get("new_str", "")))
    command = given.get("command", "create")
    if command == "insert":
        return [{"type": "insert", "line": given.get("insert_line", 0), "content": text}]
    if command in {"append", "prepend"}:
        return [{"type": command, "content": text}]
    if command in {"create", "write"}:
        return [{"type": "set", "value": text}]
    raise Refused(f"The command {command!r} cannot be translated. Use write_resource.")


def replacement(edit: dict) -> dict:
    old, new = (
        edit.get("old_string", edit.get("old_str")),
        edit.get("new_string", edit.get("new_str", "")),
    )
    operation = {"type": "str_replace", "old_str": old, "new_str": new}
    return {**operation, "replace_all": True} if edit.get("replace_all") else operation


def write(uri: str, wanted: list) -> str:
    batch = {
        "operations": [{"uri": uri, "operation": operation} for operation in wanted],
        "atomic": True,
    }
    results = ask("/api/v1/write_batch/", batch)["results"]
    diffs = [
        result["diff"] if isinstance(result["diff"], str) else json.dumps(result["diff"])
        for result in results
    ]
    return "\n".join(
        [f"Written to {uri} (ETag {results[-1]['etag']}); the file system was not touched.", *diffs]
    )


def read(uri: str) -> str:
    answer = ask(f"/api/v1/resource/?uri={urllib.parse.quote(uri, safe='')}")
    contents = answer["contents"]
    text = (
        contents
        if isinstance(contents, str)
        else json.dumps(contents, ensure_ascii=False, indent=2)
    )
    return f"{uri} (ETag {answer['etag']}):\n{text}"


def ask(path: str, body: "dict | None" = None) -> dict:
    token = os.environ.get("BACKLOG_TOKEN", "")
    if not token:
        raise Refused("Set BACKLOG_TOKEN to a token of yours.")
    url = os.environ.get("BACKLOG_URL", "http://127.0.0.1:8000").rstrip("/") + path
    if not url.startswith(("http://", "https://")):
        raise Refused("BACKLOG_URL must begin with http:// or https://.")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, headers)  # noqa: S310  # checked above
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:  # noqa: S310  # the same
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refused(explained(error)) from error
    except OSError as error:
        raise Refused(
            f"Backlog does not answer at {url}: {error}. Start it, or set BACKLOG_URL."
        ) from error


def explained(error: urllib.error.HTTPError) -> str:
    try:
        told = json.load(error)["error"]
    except (ValueError, KeyError):
        return f"Backlog answered {error.code}."
    details = json.dumps(told.get("details") or {}, ensure_ascii=False)[:1000]
    return f"{told['code']}: {told['message']} {told.get('suggestion') or ''} {details}"


if __name__ == "__main__":
    sys.exit(main())
