"""Run the official clients against the whole site as `make run` starts it: web, worker, scheduler.

Each one lists, calls, reads and subscribes, and receives once a write through REST, one in the
admin and one by a job.
"""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from backlog_site.devserver.embedded import free_port, spawn, stop
from tests.mcp.conformance.commands import command_checks

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PATIENCE_SECONDS = 90
TASK = "TASK-0001"
TASK_URI = f"mcp://backlog/tasks/{TASK}"
FILE_URI = "mcp://backlog/resources/watched/notes.md"
EXPECTED = sorted([(TASK_URI, "admin"), (TASK_URI, "rest"), (FILE_URI, "sync")])
# The method, its arguments, and what its answer must name.
INSPECTED = (
    ("tools/list", [], "backlog_get"),
    ("resources/templates/list", [], "mcp://backlog/tasks/{id}"),
    ("prompts/list", [], "plan_epic"),
    ("tools/call", ["--tool-name", "backlog_list", "--tool-arg", "limit=1"], "TASK-"),
    ("resources/read", ["--uri", TASK_URI], TASK),
)

Heard = list[tuple[str, str]]


@dataclass(frozen=True)
class Site:
    url: str
    token: str
    password: str
    environment: dict[str, str]
    mirrored: Path

    @property
    def mcp(self) -> str:
        return f"{self.url}/mcp"

    def write_everywhere(self) -> None:
        title = f"Written at {time.time_ns()}"
        headers = {"Authorization": f"Bearer {self.token}"}
        httpx.patch(
            f"{self.url}/api/v1/tasks/{TASK}/", json={"title": title}, headers=headers
        ).raise_for_status()
        self._save_in_admin(f"Saved after it was {title.lower()}")
        self.mirrored.write_text(title)
        self.scan()

    def _save_in_admin(self, title: str) -> None:
        page = f"/admin/resources_app/task/{int(TASK.removeprefix('TASK-'))}/change/"
        with httpx.Client(
            base_url=self.url, follow_redirects=True, headers={"Referer": self.url}
        ) as http:
            form = form_of(http.get(page).text) | {
                "username": "admin",
                "password": self.password,
                "next": page,
            }
            form = form_of(http.post("/admin/login/", data=form).text) | {
                "title": title,
                "_save": "Save",
            }
            saved = http.post(page, data=form).text
            assert "changed successfully" in saved, f"the admin did not save:\n{saved}"

    def scan(self) -> None:
        command = "from resources_app.jobs.queue import enqueue; enqueue('scan_resources', {})"
        manage = [sys.executable, "manage.py", "shell", "--verbosity", "0", "--command", command]
        subprocess.run(manage, cwd=ROOT, env=self.environment, check=True)


class _Form(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._area = self._select = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        name = given.get("name", "")
        if tag == "select":
            self._select = name
        elif tag == "textarea":
            self._area = name
            self.fields[name] = ""
        elif tag == "option" and "selected" in given:
            self.fields[self._select] = given.get("value", "")
        elif tag == "input" and name and given.get("type") not in {"submit", "checkbox", "file"}:
            self.fields[name] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = ""

    def handle_data(self, text: str) -> None:
        if self._area:
            self.fields[self._area] += text


def form_of(page: str) -> dict[str, str]:
    form = _Form()
    form.feed(page)
    return form.fields


def check_clients(
    modules: Path, folder: Path, environment: dict[str, str]
) -> list[tuple[str, list[str]]]:
    """Return what each client missed or received twice; an empty list is a success."""
    with whole_site(folder, environment) as site:
        clients: dict[str, Callable[[], list[str]]] = {
            "python client, handshake era": lambda: _differences(
                asyncio.run(_python(site, "legacy"))
            ),
            "python client, newer era": lambda: _differences(asyncio.run(_python(site, "auto"))),
            "typescript sdk, handshake era": lambda: _differences(
                _typescript(modules, site, "sdk")
            ),
            "typescript client, newer era": lambda: _differences(
                _typescript(modules, site, "client")
            ),
            "inspector, command line": lambda: _inspector(modules, site),
            **command_checks(modules, folder, site.mcp, site.token),
        }
        return [(name, _problems(check)) for name, check in clients.items()]


@contextmanager
def whole_site(folder: Path, environment: dict[str, str]) -> Iterator[Site]:
    root = folder / "watched"
    root.mkdir()
    mirrored = root / "notes.md"
    mirrored.write_text("First")
    port = free_port()
    environment = environment | {
        "BACKLOG_DATA_DIR": str(folder / "whole-site"),
        "BACKLOG_RESOURCE_ROOTS": f"watched={root}",
    }
    log = folder / "serve.log"
    with log.open("wb") as output:
        command = [sys.executable, "manage.py", "serve", "--port", str(port)]
        process = spawn(command, output=output, environment=environment, folder=ROOT)
    try:
        token, password = _first_login(process, log)
        site = Site(f"http://127.0.0.1:{port}", token, password, environment, mirrored)
        site.scan()
        _wait_for_file(site)
        yield site
    except BaseException:
        sys.stderr.write(log.read_text(errors="replace"))
        raise
    finally:
        stop(process)


def _first_login(process: subprocess.Popen[bytes], log: Path) -> tuple[str, str]:
    for _ in _patiently():
        shown = log.read_text(errors="replace")
        token, password = re.search(r"\bbl_\S+", shown), re.search(r"password (\S+)", shown)
        if token and password:
            return token[0], password[1]
        if process.poll() is not None:
            break
    raise SystemExit("The site did not start.")


def _wait_for_file(site: Site) -> None:
    headers = {"Authorization": f"Bearer {site.token}"}
    for _ in _patiently():
        if httpx.get(
            f"{site.url}/api/v1/resource/", params={"uri": FILE_URI}, headers=headers
        ).is_success:
            return
    raise SystemExit("The worker did not mirror the folder.")


def _patiently() -> Iterator[None]:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        yield
        time.sleep(0.2)


async def _python(site: Site, mode: str) -> Heard:
    heard: Heard = []

    async def note(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated":
            heard.append((str(message.params.uri), message.params.meta["change"]["via"]))

    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {site.token}"}, timeout=30
    ) as http:
        transport = streamable_http_client(site.mcp, http_client=http)
        async with Client(transport, mode=mode, message_handler=note) as client:
            await _use(client)
            if mode == "legacy":
                for uri in (TASK_URI, FILE_URI):
                    await client.subscribe_resource(uri)
                await _write_and_wait(site, heard)
            else:
                async with client.listen(resource_subscriptions=[TASK_URI, FILE_URI]):
                    await _write_and_wait(site, heard)
    return heard


async def _use(client: Client) -> None:
    assert any(tool.name == "backlog_get" for tool in (await client.list_tools()).tools)
    assert (await client.list_resources()).resources
    called = await client.call_tool("backlog_get", {"id": TASK_URI})
    assert not called.is_error
    assert (await client.read_resource(TASK_URI)).contents


async def _write_and_wait(site: Site, heard: Heard) -> None:
    await asyncio.to_thread(site.write_everywhere)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(heard) < len(EXPECTED) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)  # a duplicate would arrive in this time


def _typescript(modules: Path, site: Site, which: str) -> Heard:
    node = [
        str(modules / "node/bin/node"),
        str(HERE / "official.mjs"),
        which,
        site.mcp,
        site.token,
        TASK_URI,
        FILE_URI,
    ]
    environment = site.environment | {"NODE_MODULES_FOLDER": str(modules)}
    with subprocess.Popen(
        node, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        assert (said := process.stdout.readline()) == "ready\n", said + process.stdout.read()
        site.write_everywhere()
        return [(update["uri"], update["via"]) for update in json.loads(process.stdout.read())]


def _inspector(modules: Path, site: Site) -> list[str]:
    return [
        f"{method} failed"
        for method, arguments, named in INSPECTED
        if named not in _ask(modules, site, method, arguments)
    ]


def _ask(modules: Path, site: Site, method: str, arguments: list[str]) -> str:
    command = [
        str(modules / "node/bin/node"),
        str(modules / ".bin/mcp-inspector"),
        "--cli",
        site.mcp,
    ]
    command += [
        "--transport",
        "http",
        "--header",
        f"Authorization: Bearer {site.token}",
        "--method",
        method,
        *arguments,
    ]
    return subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=site.environment, check=True
    ).stdout


def _differences(heard: Heard) -> list[str]:
    return [] if sorted(heard) == EXPECTED else [f"heard {sorted(heard)} instead of {EXPECTED}"]


def _problems(check: Callable[[], list[str]]) -> list[str]:
    try:
        return check()
    except (
        AssertionError,
        OSError,
        ValueError,
        subprocess.SubprocessError,
        httpx.HTTPError,
        ExceptionGroup,
    ) as error:
        return [f"{type(error).__name__}: {error}"]
