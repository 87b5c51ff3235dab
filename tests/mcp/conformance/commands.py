"""Make every connection of the Connect page and docs/connect.md with the real client.

Runs exactly the documented strings, in a separate home, with no network beyond loopback.
"""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from backlog_site.accounts.clients import NAME, VARIABLE, checks, connections, oauth_command

SECONDS = 180
# Nothing listens there, so any request that leaves the machine fails.
NO_PROXY_BUT_LOOPBACK = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}
# Gemini connects in trusted folders; the folder of the test is new.
TRUSTED = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
A_TOOL = "backlog_get"


@dataclass(frozen=True)
class Desk:
    """Simulate a user's machine: an empty home, the clients on the path, the token in its
    variable.
    """

    home: Path
    modules: Path
    url: str
    token: str

    @property
    def environment(self) -> dict[str, str]:
        folders = (self.modules / "node/bin", self.modules / ".bin")
        path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
        return {
            "HOME": str(self.home),
            "PATH": path,
            VARIABLE: self.token,
            "CI": "1",
            **NO_PROXY_BUT_LOOPBACK,
            **TRUSTED,
        }

    def run(self, command: str) -> str:
        """Run in the folder of the packages, where npx finds them without asking the registry."""
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=self.modules.parent,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stdout}"
        return ran.stdout


def documented(url: str) -> dict[str, str]:
    return {one.key: one.text for one in (*connections(url), *checks(url))}


def command_checks(
    modules: Path, folder: Path, url: str, token: str
) -> dict[str, Callable[[], list[str]]]:
    """Return a check per client that returns what is wrong."""
    texts = documented(url)

    def desk(name: str) -> Desk:
        home = folder / f"home-{name}"
        home.mkdir()
        return Desk(home, modules, url, token)

    def shown(key: str, question: str, *expected: str) -> Callable[[], list[str]]:
        def check() -> list[str]:
            at = desk(key)
            answer = at.run(texts[key])
            if question:
                answer = at.run(question)
            return [
                f"{question or key}: no {words!r} in\n{answer}"
                for words in expected
                if words not in answer
            ]

        return check

    def signs_in() -> list[str]:
        at = desk("oauth")
        at.run(oauth_command(url))
        answer = at.run("claude mcp list")
        return (
            []
            if "Needs authentication" in answer
            else [f"claude does not offer to sign in:\n{answer}"]
        )

    return {
        "claude code, with a token": shown(
            "claude_code", "claude mcp list", f"{NAME}: {url}", "Connected"
        ),
        "claude code, signing in": signs_in,
        "codex": shown(
            "codex", f"codex mcp get {NAME} && codex mcp list", url, VARIABLE, "Bearer token"
        ),
        "gemini cli": shown("gemini", "gemini mcp list", f"{NAME}: {url}", "Connected"),
        "curl": shown("curl", "", '"serverInfo"'),
        "mcp inspector": shown("inspector", "", A_TOOL),
        "cursor": lambda: asyncio.run(
            _over_http(json.loads(texts["cursor"])["mcpServers"][NAME], token)
        ),
        "vs code": lambda: asyncio.run(
            _over_http(json.loads(texts["vscode"])["servers"][NAME], token)
        ),
        "claude desktop": lambda: asyncio.run(
            _over_stdio(json.loads(texts["desktop"])["mcpServers"][NAME], desk("desktop"))
        ),
    }


async def _over_http(server: dict[str, Any], token: str) -> list[str]:
    """Connect as an editor's file says, with the token where the editor puts it."""
    filled = {name: _filled(value, token) for name, value in server["headers"].items()}
    async with (
        httpx2.AsyncClient(headers=filled, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(server["url"], http_client=http)) as client,
    ):
        return await _tools_missing(client)


async def _over_stdio(server: dict[str, Any], desk: Desk) -> list[str]:
    given = {
        name: value.replace("<your token>", desk.token) for name, value in server["env"].items()
    }
    started = StdioServerParameters(
        command=server["command"],
        args=server["args"],
        env=desk.environment | given,
        cwd=desk.modules.parent,
    )
    async with Client(started) as client:
        return await _tools_missing(client)


async def _tools_missing(client: Client) -> list[str]:
    names = [tool.name for tool in (await client.list_tools()).tools]
    return [] if A_TOOL in names else [f"no {A_TOOL} in {names}"]


def _filled(value: str, token: str) -> str:
    for place in (f"${{env:{VARIABLE}}}", "${input:backlog-token}"):
        value = value.replace(place, token)
    assert "$" not in value, value
    return value
