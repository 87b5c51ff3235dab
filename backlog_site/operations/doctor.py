"""Check that the site works as configured, and say how to fix it where it does not.

No check changes anything.
"""

import asyncio
import shutil
from collections.abc import Iterator
from typing import Any

import httpx2
from django.conf import settings
from kombu.exceptions import OperationalError as BrokerAway
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from redis.exceptions import RedisError

from backlog_site.celery import app as celery
from backlog_site.operations import deployment, health
from backlog_site.operations.findings import OK, PROBLEM, WARNING, Finding
from resources_app.files.disk import mounts
from resources_app.identity import tokens
from resources_app.intelligencebank.sync.standing import mirror_health
from search_app.index.rebuild import index_health

LOW_DISK_BYTES = 1024**3
PATIENCE_SECONDS = 10


def examine(url: str) -> Iterator[Finding]:
    """Run all checks on the site at `url`. Skips checks that need the database when it is down."""
    asked = health.ask_all()
    yield _database(asked)
    yield _broker(asked)
    if asked["migrations"] == "ok":
        yield _worker(asked)
        yield _index()
        yield from _mirrors()
        yield from deployment.processes()
        yield from deployment.transactions()
        yield _round_trip(url)
        yield from deployment.proxies(url)
    yield from _roots()
    yield _disk()
    yield from deployment.data_folder()
    yield from deployment.settings_in_production()


def _database(asked: dict[str, Any]) -> Finding:
    engine = settings.DATABASES["default"]["ENGINE"].rsplit(".", 1)[-1]
    if asked["database"] != "ok":
        return Finding(
            PROBLEM, "database", f"{engine} does not answer.", "Start it, or correct DATABASE_URL."
        )
    if asked["migrations"] != "ok":
        return Finding(
            PROBLEM, "database", "Migrations are missing.", "Run: python manage.py migrate"
        )
    return Finding(OK, "database", f"{engine} answers and is migrated.")


def _broker(asked: dict[str, Any]) -> Finding:
    if asked["redis"] == "ok":
        return Finding(OK, "broker", "Redis answers.")
    return Finding(
        PROBLEM,
        "broker",
        "Redis does not answer: jobs wait, updates arrive late, sessions of older MCP clients"
        " fail.",
        "Start it (make run brings one), or correct REDIS_URL.",
    )


def _worker(asked: dict[str, Any]) -> Finding:
    try:
        alive = celery.control.ping(timeout=1) if asked["redis"] == "ok" else []
    except (BrokerAway, RedisError, OSError):
        alive = []
    lag = f"The oldest waiting job is {asked['job_lag_seconds']:.0f} s late."
    if not alive:
        return Finding(
            PROBLEM,
            "worker",
            f"No worker answers. {lag}",
            "Start one: make run, or docker compose up worker beat",
        )
    if asked["job_lag_seconds"] > health.LAGGING_SECONDS:
        return Finding(
            WARNING, "worker", lag, "Start more workers; look for failing jobs in the admin."
        )
    return Finding(OK, "worker", f"{len(alive)} answer. {lag}")


def _index() -> Finding:
    found = index_health()
    if found["status"] == "ok":
        return Finding(OK, "search index", f"{found['documents']} documents, all current.")
    stale = sum(found["missing_or_stale"].values())
    message = (
        f"{stale} documents are missing or stale, {found['leftover']} are left over"
        f" ({found['status']})."
    )
    return Finding(WARNING, "search index", message, found["suggestion"])


def _mirrors() -> Iterator[Finding]:
    for one in mirror_health():
        level = OK if one.is_well else WARNING
        yield Finding(level, "IntelligenceBank", f"{one.client_id}: {one.message}", one.advice)


def _round_trip(url: str) -> Finding:
    """Act as an agent: connect over HTTP, list the tools, read an address."""
    user = tokens.first_admin()
    if user is None:
        return Finding(
            PROBLEM, "MCP", "There is no admin account.", "Run: python manage.py createsuperuser"
        )
    try:
        with tokens.lent(user, "doctor", "read") as token:
            version, count = asyncio.run(_ask_as_agent(f"{url}/mcp", token))
    except (OSError, MCPError, httpx2.HTTPError, TimeoutError, ExceptionGroup) as error:
        advice = (
            f"Is the site running at {url}? Start it with make run, or name its address with --url."
        )
        return Finding(PROBLEM, "MCP", f"{url}/mcp cannot be used: {_root(error)}", advice)
    return Finding(
        OK, "MCP", f"{url}/mcp speaks {version}, lists {count} tools and reads auth://status."
    )


async def _ask_as_agent(url: str, token: str) -> tuple[str, int]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        listed = await client.list_tools()
        await client.read_resource("auth://status")
        return str(client.protocol_version), len(listed.tools)


def _root(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:200]


def _roots() -> Iterator[Finding]:
    for mount in mounts():
        if mount.folder.is_dir():
            yield Finding(OK, "resource root", f"{mount.prefix} mirrors {mount.folder}.")
        else:
            advice = (
                "Correct BACKLOG_RESOURCE_ROOTS, or forget it: python manage.py scan_resources"
                " --forget NAME"
            )
            yield Finding(WARNING, "resource root", f"{mount.folder} is not there.", advice)


def _disk() -> Finding:
    free = shutil.disk_usage(settings.DATA_DIR).free
    message = f"{free / 1024**3:.1f} GiB are free under {settings.DATA_DIR}."
    if free >= LOW_DISK_BYTES:
        return Finding(OK, "disk", message)
    return Finding(WARNING, "disk", message, "Make room, or move BACKLOG_DATA_DIR.")
