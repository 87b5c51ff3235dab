"""Run `manage.py bench_ib ROWS PACED_ROWS`: mirror a fake IntelligenceBank, and read it without
storing anything.
"""

import json
import random
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from typing import Any

import httpx
from django.conf import settings
from django.core.management import BaseCommand

from bench.calls import BenchFailed
from resources_app.intelligencebank import client as api
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.fake import demo
from resources_app.intelligencebank.sync import runs, working
from resources_app.intelligencebank.sync.stages import following
from resources_app.models import IBConnection, IBFolder, IBSyncRun

ACCOUNT = {"email": demo.LARGE_SERVICE, "password": demo.PASSWORD}
UNPACED_SECONDS = 0.001
STARTED_WITHIN = 180
# The fake listens on this many consecutive ports.
PORTS = 4


class Command(BaseCommand):
    help = (
        "Measures the mirror of IntelligenceBank: rows per second, calls, and against merely"
        " reading the pages."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("rows", type=int, help="as fast as it goes")
        parser.add_argument(
            "paced_rows", type=int, help="at the default pace, against reading and discarding"
        )

    def handle(self, *args: Any, rows: int, paced_rows: int, **options: Any) -> None:
        fast = _mirror(rows, seconds=UNPACED_SECONDS)
        paced = _mirror(paced_rows, seconds=60.0)
        ratio = round(paced["sync_s"] / paced["read_s"], 2)
        figures = {
            "ib_rows": rows,
            "ib_rows_per_s": round(rows / fast["sync_s"], 1),
            "ib_calls": fast["calls"],
        }
        figures |= {
            "ib_unchanged_rows_per_s": round(rows / fast["again_s"], 1),
            "ib_sync_to_read_ratio": ratio,
        }
        self.stdout.write(json.dumps(figures))


def _mirror(rows: int, *, seconds: float) -> dict[str, float]:
    port = _free_ports(PORTS)
    settings.IB_RATE_SECONDS = seconds
    settings.IB_LOCAL_ORIGINS = [f"http://127.0.0.1:{port + offset}" for offset in range(PORTS)]
    command = [
        sys.executable,
        "manage.py",
        "fake_ib",
        "--port",
        str(port),
        "--resources",
        str(rows),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as fake:
        try:
            _wait_for(f"http://127.0.0.1:{port}")
            return _measure(f"http://127.0.0.1:{port}")
        finally:
            fake.terminate()


def _measure(platform: str) -> dict[str, float]:
    connection = connections.create(demo.LARGE_ID, "Large", platform, daily_budget=10**6, **ACCOUNT)
    try:
        sync_s, run = _timed_sync(connection)
        again_s, _ = _timed_sync(connection)
        return {
            "sync_s": sync_s,
            "again_s": again_s,
            "read_s": _read(connection),
            "calls": run.counters["calls"],
        }
    finally:
        IBConnection.objects.filter(pk=connection.pk).delete()


def _timed_sync(connection: IBConnection) -> tuple[float, IBSyncRun]:
    connection.refresh_from_db()
    began = time.perf_counter()
    run = runs.start(connection, "full")
    working.work(run, working.ENDLESS)
    if run.status != "complete":
        raise BenchFailed(f"The sync ended {run.status}: {run.error}")
    return time.perf_counter() - began, run


def _read(connection: IBConnection) -> float:
    """Read the same pages with the same client and discard them."""
    parents = IBFolder.objects.filter(connection=connection, folders_count__gt=0).values_list(
        "ib_id", flat=True
    )
    client = connections.client_for(connection)
    session = client.login(**ACCOUNT)
    began = time.perf_counter()
    for parent in ["", *parents]:
        client.fetch(session, api.folders_in(parent))
    offset: int | None = 0
    while offset is not None:
        offset = following(client.fetch(session, api.all_resources(offset)))
    client.close()
    return time.perf_counter() - began


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + STARTED_WITHIN
    while time.monotonic() < deadline:
        try:
            httpx.get(f"{url}/v1/auth/app/getYapiAddress", timeout=2, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return
    raise BenchFailed("The fake IntelligenceBank did not start.")


def _free_ports(count: int) -> int:
    """Return the first of several consecutive ports, below the system's ephemeral port range."""
    while True:
        first = random.randrange(20_000, 32_000)  # no secret
        if all(_is_free(first + offset) for offset in range(count)):
            return first


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
