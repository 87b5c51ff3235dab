"""Run `manage.py bench_serving TOKEN REQUESTS`: measure the CPU time of a request in each handler,
in this process.
"""

import asyncio
import io
import json
import logging
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import BaseCommand
from django.db import connection
from django.test import Client

from backlog_site.serving.django_threads import ThreadedSite
from bench.calls import BenchFailed

REST = {
    "bare view": "/floor/5/",
    "REST get": "/api/v1/tasks/TASK-0005/",
    "REST list of 20": "/api/v1/tasks/?limit=20",
}
PAGES = {"viewer: a task": "/t/TASK-0005/", "viewer: the board": "/board/"}
WARM_UP = 5
ROUNDS = 5
Headers = dict[str, str]
# Sends that many requests, one after the other.
Repeat = Callable[[int], None]


class Command(BaseCommand):
    help = "Measures Django's handlers against the site's own."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("token")
        parser.add_argument("requests", type=int)

    def handle(self, *args: Any, token: str, requests: int, **options: Any) -> None:
        logging.disable(logging.INFO)
        _keep_connection()
        wsgi, asgi, site, loop = (
            WSGIHandler(),
            ASGIHandler(),
            ThreadedSite(),
            asyncio.new_event_loop(),
        )
        found = {}
        for paths, own in (
            (REST, {"authorization": f"Bearer {token}"}),
            (PAGES, {"cookie": _session()}),
        ):
            for name, path in paths.items():
                handlers: dict[str, Repeat] = {
                    "wsgi": partial(_repeat_wsgi, wsgi, path, own),
                    "asgi": lambda count, path=path, own=own: loop.run_until_complete(
                        _repeat(asgi, path, own, count)
                    ),
                    "site": lambda count, path=path, own=own: loop.run_until_complete(
                        _repeat(site, path, own, count)
                    ),
                }
                found[name] = _take_turns(handlers, requests // ROUNDS)
        self.stdout.write(json.dumps(found))


def _keep_connection() -> None:
    """Keep the connection open for WSGI, its best case; the site's own threads keep theirs."""
    if connection.vendor == "sqlite":
        connection.settings_dict = {**connection.settings_dict, "CONN_MAX_AGE": 60}


def _session() -> str:
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"


def _take_turns(handlers: dict[str, Repeat], count: int) -> dict[str, float]:
    used = dict.fromkeys(handlers, 0.0)
    for repeat in handlers.values():
        repeat(WARM_UP)
    for _ in range(ROUNDS):
        for name, repeat in handlers.items():
            began = time.process_time()
            repeat(count)
            used[name] += time.process_time() - began
    return {name: round(1000 * cpu / (count * ROUNDS), 2) for name, cpu in used.items()}


def _repeat_wsgi(handler: WSGIHandler, path: str, headers: Headers, count: int) -> None:
    for _ in range(count):
        statuses: list[str] = []
        answer = handler(
            _environ(path, headers), lambda status, _, statuses=statuses: statuses.append(status)
        )
        b"".join(answer)
        answer.close()
        _check(path, int(statuses[0].split()[0]))


def _environ(path: str, headers: Headers) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        **{f"HTTP_{name.upper()}": value for name, value in headers.items()},
    }


async def _repeat(handler: ASGIHandler, path: str, headers: Headers, count: int) -> None:
    for _ in range(count):
        waiting = [{"type": "http.request", "body": b"", "more_body": False}]
        sent: list[dict[str, Any]] = []

        async def receive(waiting: list[dict[str, Any]] = waiting) -> dict[str, Any]:
            return waiting.pop() if waiting else await asyncio.Event().wait()

        async def send(message: dict[str, Any], sent: list[dict[str, Any]] = sent) -> None:
            sent.append(message)

        await handler(_scope(path, headers), receive, send)
        _check(path, sent[0]["status"])


def _scope(path: str, headers: Headers) -> dict[str, Any]:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [
            (name.encode(), value.encode())
            for name, value in {"host": "127.0.0.1", **headers}.items()
        ],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 0),
    }


def _check(path: str, status: int) -> None:
    if status != 200:
        raise BenchFailed(f"{path} was answered with {status}.")
