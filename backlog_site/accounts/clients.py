"""List how each MCP client connects.

The Connect page, docs/connect.md and the tests that run the commands share this table.
"""

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote

NAME = "backlog"
VARIABLE = "BACKLOG_TOKEN"
_BEARER = f'"Authorization: Bearer ${VARIABLE}"'


@dataclass(frozen=True)
class Connection:
    """Describe a command to run or a file to write.

    It never contains the secret, which stays in a variable or is prompted for.
    """

    key: str
    client: str
    note: str
    text: str
    language: Literal["sh", "json"] = "sh"
    # The file that the text goes into.
    place: str = ""
    # Opens the client and adds the server there.
    link: str = ""


def connections(url: str) -> list[Connection]:
    """Return the connection of every client.

    Name and URL come before `--header`, which takes every word after it.
    """
    return [
        Connection(
            "claude_code",
            "Claude Code",
            "Run in any terminal.",
            f"claude mcp add --transport http --scope user {NAME} {url} --header {_BEARER}",
        ),
        Connection(
            "codex",
            "Codex",
            f"Run in any terminal. Codex reads {VARIABLE} each time it starts.",
            f"codex mcp add {NAME} --url {url} --bearer-token-env-var {VARIABLE}",
        ),
        Connection(
            "gemini",
            "Gemini CLI",
            "Run in any terminal. Gemini connects in folders that you trust.",
            f"gemini mcp add --transport http --scope user {NAME} {url} --header {_BEARER}",
        ),
        _cursor(url),
        _vscode(url),
        _desktop(url),
    ]


def oauth_command(url: str) -> str:
    """Return the command for a client that signs in through the browser and needs no token."""
    return f"claude mcp add --transport http --scope user {NAME} {url}"


def checks(url: str) -> list[Connection]:
    """Return commands that prove, without an agent, that the server accepts a token."""
    greeting = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "curl", "version": "1"},
    }
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting})
    return [
        Connection(
            "curl",
            "curl",
            "Answers with the server's name and version.",
            f'curl -s {url} -H {_BEARER} -H "Content-Type: application/json" \\\n'
            '  -H "Accept: application/json, text/event-stream" \\\n'
            f"  -d '{hello}'",
        ),
        Connection(
            "inspector",
            "MCP Inspector",
            "Lists the tools that agents see.",
            f"npx -y @modelcontextprotocol/inspector --cli {url} --transport http \\\n"
            f"  --header {_BEARER} --method tools/list",
        ),
    ]


def _cursor(url: str) -> Connection:
    server = {"url": url, "headers": {"Authorization": f"Bearer ${{env:{VARIABLE}}}"}}
    config = quote(base64.b64encode(json.dumps(server).encode()).decode())
    return Connection(
        "cursor",
        "Cursor",
        "Cursor reads the token from the variable.",
        _json({"mcpServers": {NAME: server}}),
        "json",
        "~/.cursor/mcp.json",
        f"cursor://anysphere.cursor-deeplink/mcp/install?name={NAME}&config={config}",
    )


def _vscode(url: str) -> Connection:
    asked = {
        "type": "promptString",
        "id": "backlog-token",
        "description": "Backlog token",
        "password": True,
    }
    server = {
        "type": "http",
        "url": url,
        "headers": {"Authorization": "Bearer ${input:backlog-token}"},
    }
    return Connection(
        "vscode",
        "VS Code",
        "VS Code asks for the token.",
        _json({"inputs": [asked], "servers": {NAME: server}}),
        "json",
        ".vscode/mcp.json",
        "vscode:mcp/install?" + quote(json.dumps({"name": NAME, **server, "inputs": [asked]})),
    )


def _desktop(url: str) -> Connection:
    remote = ["-y", "mcp-remote", url, "--header", "Authorization:${AUTH}"]
    server = {"command": "npx", "args": remote, "env": {"AUTH": "Bearer <your token>"}}
    return Connection(
        "desktop",
        "Claude Desktop",
        "For an address that only your network can reach. "
        "A public HTTPS address goes into Customize, Connectors, Add custom connector instead.",
        _json({"mcpServers": {NAME: server}}),
        "json",
        "claude_desktop_config.json",
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2)
