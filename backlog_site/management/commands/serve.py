"""Run `manage.py serve`: the whole site in one process tree. `make run` is this command."""

import http.client
import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from backlog_site.devserver.embedded import (
    ServerFailed,
    running_valkey,
    valkey_answers,
    valkey_command,
)
from backlog_site.devserver.supervisor import CannotServe, Service, Supervisor, exclusive, listen
from backlog_site.env import library_note
from resources_app.demo import fill
from resources_app.intelligencebank import demo as ib_demo
from resources_app.intelligencebank.fake.server import ROLES

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class FirstLogin:
    password: str
    token: str


class Command(BaseCommand):
    help = (
        "Runs web, worker, scheduler and, unless REDIS_URL names one, a Valkey server. Ctrl-C stops"
        " all of it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", default=8000, type=int)

    def handle(self, *_args: Any, host: str, port: int, **_options: Any) -> None:
        try:
            with exclusive(settings.DATA_DIR), listen(host, port) as listener:
                self._serve(listener, _url(host, port))
        except (CannotServe, ServerFailed) as error:
            raise CommandError(str(error)) from error

    def _serve(self, listener: socket.socket, url: str) -> None:
        with ExitStack() as sockets:
            with _valkey():
                first_login, library = self._prepare_database(sockets)
            stages = [_valkey_services(), _site_services(listener, url, library)]
            sockets.enter_context(_noted(library))
            Supervisor(
                stages, write=self._write_line, on_ready=partial(self._announce, url, first_login)
            ).run()

    def _write_line(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()

    def _prepare_database(
        self, sockets: ExitStack
    ) -> tuple[FirstLogin | None, list[socket.socket]]:
        """Return the first login on the first run, and the sockets of the demo's IntelligenceBank
        if there is one.
        """
        self._write_line("Migrating the database …")
        call_command("migrate", verbosity=0, interactive=False)
        try:
            first_login = None if get_user_model().objects.exists() else self._seed()
            library = _library_sockets(sockets) if first_login or ib_demo.is_connected() else []
            if library:
                ib_demo.request(_origin(library[0]))
            return first_login, library
        finally:
            connections.close_all()

    def _seed(self) -> FirstLogin:
        self._write_line("Filling it with a demo backlog …")
        password = secrets.token_urlsafe(9)
        fill.seed(password)
        token = StringIO()
        call_command(
            "create_token",
            "admin",
            name="first run",
            scope="write",
            stdout=token,
            stderr=StringIO(),
        )
        return FirstLogin(password, token.getvalue().strip())

    def _announce(self, url: str, login: FirstLogin | None) -> None:
        lines = _first_lines(url, login) if login else _later_lines()
        self._write_line(
            "\n".join(["", f"Backlog is running: {url}", *lines, "Ctrl-C stops it.", ""])
        )


def _first_lines(url: str, login: FirstLogin) -> list[str]:
    return [
        "Shown only now, on the first run:",
        f"  login      admin, password {login.password} (alice and bob have the same password)",
        f"  MCP token  {login.token} (for {url}/mcp)",
    ]


def _later_lines() -> list[str]:
    manage = f"{Path(sys.executable).absolute()} manage.py"
    return [
        f"  new MCP token  {manage} create_token admin --name laptop --scope write",
        f"  new password   {manage} changepassword admin",
    ]


def _url(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # compared, not bound
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def _valkey_folder() -> Path:
    return Path(settings.DATA_DIR) / "valkey"


def _valkey() -> AbstractContextManager[None]:
    """Run a broker while the database is filled, which wakes workers by message."""
    return (
        running_valkey(settings.REDIS_URL, _valkey_folder())
        if settings.EMBEDDED_REDIS_SOCKET
        else nullcontext()
    )


def _valkey_services() -> list[Service]:
    if settings.EMBEDDED_REDIS_SOCKET is None:
        return []
    command = valkey_command(settings.REDIS_URL, _valkey_folder())
    return [
        Service(
            name="valkey", command=command, is_ready=partial(valkey_answers, settings.REDIS_URL)
        )
    ]


def _library_sockets(sockets: ExitStack) -> list[socket.socket]:
    """Open sockets on free ports.

    They stay open while the site runs, even if the process that answers on them exits.
    """
    return [sockets.enter_context(socket.create_server((LOOPBACK, 0), backlog=64)) for _ in ROLES]


def _origin(listener: socket.socket) -> str:
    return f"http://{LOOPBACK}:{listener.getsockname()[1]}"


@contextmanager
def _noted(library: list[socket.socket]) -> Iterator[None]:
    """Record the addresses for the services and for manual commands, which may all call it while it
    runs.
    """
    note = library_note(settings.DATA_DIR)
    note.write_text(" ".join(map(_origin, library)))
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def _library_services(library: list[socket.socket]) -> list[Service]:
    if not library:
        return []
    descriptors = [listener.fileno() for listener in library]
    sessions = str(Path(settings.DATA_DIR) / "demo-library-sessions.json")
    options = [
        "--sockets",
        ",".join(map(str, descriptors)),
        "--sessions",
        sessions,
        "--verbosity",
        "0",
    ]
    return [
        Service(
            name="demo-ib",
            command=[sys.executable, "manage.py", "fake_ib", *options],
            descriptors=descriptors,
        )
    ]


def _site_services(
    listener: socket.socket, url: str, library: list[socket.socket]
) -> list[Service]:
    environment = _environment(url)
    celery = [sys.executable, "-m", "celery", "--quiet", "--app", "backlog_site"]
    schedule = str(Path(settings.DATA_DIR) / "celerybeat-schedule")
    return [
        Service(
            name="web",
            command=_web_command(listener),
            descriptors=[listener.fileno()],
            is_ready=partial(_is_healthy, url),
            environment=environment,
        ),
        Service(
            name="worker",
            command=[
                *celery,
                "worker",
                "--concurrency",
                "2",
                "--without-mingle",
                "--without-gossip",
            ],
            environment=environment,
        ),
        Service(
            name="beat", command=[*celery, "beat", "--schedule", schedule], environment=environment
        ),
        *_library_services(library),
    ]


def _web_command(listener: socket.socket) -> list[str]:
    return [
        *(
            sys.executable,
            "-m",
            "uvicorn",
            "backlog_site.asgi:application",
            "--fd",
            str(listener.fileno()),
        ),
        # No proxy stands in front of this server, so a client must not be able to claim another
        # address.
        "--no-proxy-headers",
        *("--no-access-log", "--no-server-header", "--log-level", "warning"),
        *(
            "--lifespan",
            "on",
            "--http",
            "backlog_site.serving.connections:TimedConnection",
            "--timeout-graceful-shutdown",
            "5",
        ),
    ]


def _environment(url: str) -> dict[str, str]:
    """Return the environment of the services. The caller's variables win.

    Logs are readable text, because the services write to the terminal of this command. There is
    nothing to drain: the listening socket stays open while the web process restarts.
    """
    defaults = {"BACKLOG_PUBLIC_URL": url, "BACKLOG_LOG_FORMAT": "console", "PYTHONUNBUFFERED": "1"}
    defaults["BACKLOG_DRAIN_SECONDS"] = "0"
    if not sys.stdout.isatty():
        defaults["NO_COLOR"] = "1"
    return defaults | os.environ


def _is_healthy(url: str) -> bool:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=1)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
