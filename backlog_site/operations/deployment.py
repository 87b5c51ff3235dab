"""Check the deployment for `doctor`: processes, keys, proxies, folders and settings."""

import tempfile
from collections.abc import Iterator

import httpx2
from django.conf import settings
from django.core import checks as django_checks
from django.db import connection
from redis.exceptions import RedisError

from backlog_site.operations import health
from backlog_site.operations.findings import OK, PROBLEM, WARNING, Finding
from backlog_site.serving import presence

PATIENCE_SECONDS = 10
LONG_TRANSACTION_SECONDS = 60
# From the range reserved for documentation: no real client has it.
FORGED_ADDRESS = "192.0.2.77"


def processes() -> Iterator[Finding]:
    """Find a missing scheduler, and processes whose SECRET_KEY differs from the one `doctor` was
    started with.
    """
    try:
        running = presence.announced()
    except RedisError:
        return  # reported as the broker's problem
    if not any(process.kind == "beat" for process in running):
        yield Finding(
            WARNING,
            "beat",
            "No scheduler is running: sweeps, scans and syncs do not start by themselves.",
            "Start one: make run, or docker compose up beat",
        )
    other_key = [
        process for process in running if process.key_fingerprint != presence.key_fingerprint()
    ]
    for process in other_key:
        yield Finding(
            PROBLEM,
            "SECRET_KEY",
            f"The {process} has a different SECRET_KEY: sessions, cursors and stored secrets are"
            " not valid there.",
            "Give every process the same SECRET_KEY (or SECRET_KEY_FILE) and restart them.",
        )
    if running and not other_key:
        yield Finding(OK, "processes", f"Running: {', '.join(sorted(map(str, running)))}.")


def transactions() -> Iterator[Finding]:
    """Find sessions that keep a transaction open: they stop PostgreSQL from removing old row
    versions.
    """
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid, usename, state, extract(epoch FROM now() - xact_start) FROM"
            " pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND"
            " xact_start < now() - make_interval(secs => %s) ORDER BY xact_start",
            [LONG_TRANSACTION_SECONDS],
        )
        for pid, user, state, seconds in cursor.fetchall():
            yield Finding(
                WARNING,
                "transactions",
                f"Session {pid} of {user} has had a transaction open for {seconds:.0f} s"
                f" ({state}).",
                f"Find out what it does. To end it: SELECT pg_terminate_backend({pid})",
            )


def proxies(url: str) -> Iterator[Finding]:
    """Compare BACKLOG_TRUSTED_PROXIES with the number of proxies a request to the site passes."""
    headers = {health.DOCTOR_HEADER: health.doctor_pass(), "X-Forwarded-For": FORGED_ADDRESS}
    try:
        answer = httpx2.get(
            f"{url}/healthz", headers=headers, timeout=PATIENCE_SECONDS, trust_env=False
        ).json()
    except (httpx2.HTTPError, ValueError):
        return  # the round trip has reported that the site does not answer
    if "forwarded" not in answer:
        yield Finding(
            PROBLEM,
            "SECRET_KEY",
            f"The site at {url} does not accept what this command signs: its SECRET_KEY is a"
            " different one.",
            "Give every process the same SECRET_KEY (or SECRET_KEY_FILE) and restart them.",
        )
        return
    passed = _proxies_passed(answer["forwarded"])
    if passed == settings.TRUSTED_PROXIES:
        yield Finding(
            OK, "proxies", f"{passed} in front of the site, as BACKLOG_TRUSTED_PROXIES says."
        )
        return
    level = PROBLEM if answer["address"] == FORGED_ADDRESS else WARNING
    risk = (
        "clients can forge their address"
        if level == PROBLEM
        else "rate limits and logs see the wrong address"
    )
    yield Finding(
        level,
        "proxies",
        f"{passed} in front of {url}, but BACKLOG_TRUSTED_PROXIES is {settings.TRUSTED_PROXIES}:"
        f" {risk}.",
        f"Set BACKLOG_TRUSTED_PROXIES={passed} for the web processes.",
    )


def _proxies_passed(forwarded: list[str]) -> int:
    """Count the proxies.

    Each appends the address it saw, or replaces the header the client sent.
    """
    if FORGED_ADDRESS in forwarded:
        return len(forwarded) - 1 - forwarded.index(FORGED_ADDRESS)
    return len(forwarded)


def data_folder() -> Iterator[Finding]:
    try:
        with tempfile.TemporaryFile(dir=settings.DATA_DIR):
            return
    except OSError as error:
        yield Finding(
            PROBLEM,
            "data folder",
            f"{settings.DATA_DIR} is not writable: {error.strerror}.",
            "Correct its owner, or set BACKLOG_DATA_DIR.",
        )


def settings_in_production() -> Iterator[Finding]:
    """Run Django's deployment checks.

    Most of them do not apply to a site on one machine, without https.
    """
    if settings.DEBUG:
        yield Finding(
            WARNING,
            "deployment",
            "BACKLOG_DEBUG is on: error pages show source code and settings to every visitor.",
            "Unset it, except while you develop.",
        )
    if not settings.PUBLIC_URL.startswith("https://"):
        yield Finding(
            OK,
            "deployment",
            f"{settings.PUBLIC_URL} is not https: checked as a site on one machine.",
        )
        return
    found = [
        message
        for message in django_checks.run_checks(include_deployment_checks=True)
        if not message.is_silenced()
    ]
    for message in found:
        yield Finding(WARNING, "deployment", f"{message.id}: {message.msg}", message.hint or "")
    if not found:
        yield Finding(OK, "deployment", "manage.py check --deploy finds nothing.")
