"""Fork Python processes that have the third-party packages imported already.

Importing Django, Celery and the MCP SDK costs 2.5 seconds of CPU in every process of a site. A fork
of this process has them. It imports the packages of this project itself, in the environment of the
request, so that settings, connections and caches are those of a new process.

`tests.servers.forks` starts this process and sends the requests.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

# Modules whose import takes long and needs no settings.
PRELOADED = (
    "celery.app.task",
    "celery.bin.beat",
    "celery.bin.worker",
    "cryptography.fernet",
    "cryptography.x509",
    "django.contrib.admin",
    "django.contrib.messages.middleware",
    "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.db",
    "django.contrib.staticfiles.storage",
    "django.core.asgi",
    "django.core.management",
    "django.db.migrations.executor",
    "django.forms",
    "django.middleware.gzip",
    "django.test.client",
    "django.views.generic",
    "django.views.i18n",
    "django_structlog.middlewares",
    "httpx",
    "jsonschema",
    "jwcrypto.jwk",
    "kombu.transport.redis",
    "markdown_it",
    "mcp.client",
    "numpy",
    "oauthlib.oauth2",
    "prometheus_client",
    "psycopg_pool",
    "pygments.lexers",
    "requests",
    "uvicorn.main",
    "uvicorn.protocols.http.httptools_impl",
)
DESCRIPTORS = 4
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


class Fork(Exception):
    """Raised in a forked process to leave the loop of its parent."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__()
        self.request = request


def preload() -> None:
    # Without settings, an import that reads them fails here instead of giving every fork the same.
    os.environ.pop("DJANGO_SETTINGS_MODULE", None)
    for name in PRELOADED:
        importlib.import_module(name)
    # The collector of a fork would otherwise write to, and so copy, every imported object.
    gc.collect()
    gc.freeze()


def serve(requests: socket.socket) -> None:
    """Fork for each request until the other end closes. Report each pid and each exit status."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker)
    reports: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([requests, woken], [], [])
        if woken in readable:
            os.read(woken, 1024)
            report_ended(reports)
        if requests in readable:
            request, descriptors = receive(requests)
            if request is None:
                return
            pid = os.fork()
            if pid == 0:
                requests.close()
                for descriptor in (woken, waker, *reports.values(), descriptors[-1]):
                    os.close(descriptor)
                take_over(request, descriptors[:-1])
            for descriptor in descriptors[:-1]:
                os.close(descriptor)
            reports[pid] = descriptors[-1]
            os.write(descriptors[-1], f"{pid}\n".encode())


def report_ended(reports: dict[int, int]) -> None:
    for pid in list(reports):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            report = reports.pop(pid)
            with suppress(BrokenPipeError):
                os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os.close(report)


def receive(requests: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    data, descriptors, _, _ = socket.recv_fds(requests, 1 << 16, DESCRIPTORS)
    while data and not data.endswith(b"\n"):
        data += requests.recv(1 << 16)
    return (json.loads(data) if data else None), descriptors


def take_over(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Become the process that the request describes."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if request["start_new_session"]:
        os.setsid()
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = sys.__stdin__ = os.fdopen(0, closefd=False)
    sys.stdout = sys.__stdout__ = os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.__stderr__ = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    raise Fork(request)


def run(arguments: list[str]) -> None:
    """Do what `python` does with these arguments."""
    how, *rest = arguments
    sys.path[0] = ""
    if how == "-c":
        code, *rest = rest
        sys.argv = ["-c", *rest]
        sys.modules["__main__"].__spec__ = None
        exec(compile(code, "<string>", "exec"), sys.modules["__main__"].__dict__)
    elif how == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = str(Path(how).resolve().parent)
        runpy.run_path(how, run_name="__main__")


if __name__ == "__main__":
    preload()
    try:
        serve(socket.socket(fileno=int(sys.argv[1])))
    except Fork as fork:
        arguments = fork.request["arguments"]
        del fork
    else:
        sys.exit()
    run(arguments)
