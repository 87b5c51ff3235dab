"""Report liveness and readiness. Public, fast, and bounded even when a server it asks is frozen."""

import shutil
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any

import structlog
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db import Error, connection, connections
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from backlog_site.devserver.embedded import valkey_answers
from backlog_site.serving.draining import drain
from resources_app.database import schema
from resources_app.errors import Unavailable
from resources_app.jobs import queue

PATIENCE_SECONDS = 2
LAGGING_SECONDS = 60
# Below this the disk counts as full: SQLite, its log and the queue grow by more within minutes.
FULL_BYTES = 50 * 1024**2
DOCTOR_HEADER = "X-Backlog-Doctor"

logger = structlog.get_logger("backlog.health")


class Probe:
    """Ask one question at a time in a dedicated thread.

    A frozen server blocks that thread, never a request.
    """

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask = ask
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="health")
        self._asked: Future[dict[str, Any]] | None = None

    def start(self) -> Future[dict[str, Any]]:
        if self._asked is None or self._asked.done():
            self._asked = self._thread.submit(self._ask)
        return self._asked


def _ask_database() -> dict[str, Any]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if unknown := schema.unknown_migrations():
            return {"database": "ok", "migrations": "newer", "unknown_migrations": unknown}
        if missing := schema.missing_migrations():
            return {"database": "ok", "migrations": "missing", "missing_migrations": missing}
        return {"database": "ok", "migrations": "ok", "job_lag_seconds": round(queue.lag(), 1)}
    except Error as error:
        logger.warning("database_unavailable", reason=str(error))
        return {"database": "unavailable"}
    finally:
        connections.close_all()


def _ask_redis() -> dict[str, Any]:
    return {"redis": "ok" if valkey_answers(settings.REDIS_URL) else "unavailable"}


_database = Probe(_ask_database)
_redis = Probe(_ask_redis)


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    answer = {"status": "ok"}
    if is_from_doctor(request.headers.get(DOCTOR_HEADER, "")):
        return JsonResponse(
            answer | {"address": request.META["REMOTE_ADDR"], "forwarded": _forwarded(request)}
        )
    return JsonResponse(answer)


def doctor_pass() -> str:
    """Sign a header value with which `doctor` learns how the site sees a request."""
    return TimestampSigner(salt=DOCTOR_HEADER).sign("doctor")


def is_from_doctor(value: str) -> bool:
    try:
        return (
            bool(value)
            and TimestampSigner(salt=DOCTOR_HEADER).unsign(value, max_age=60) == "doctor"
        )
    except BadSignature:
        return False


def _forwarded(request: HttpRequest) -> list[str]:
    return [
        hop.strip() for hop in request.headers.get("X-Forwarded-For", "").split(",") if hop.strip()
    ]


@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    if drain.is_draining:
        return _unavailable("draining", Unavailable("This process is shutting down."))
    checks = ask_all()
    if checks["database"] != "ok" or checks["migrations"] != "ok":
        return _unavailable("unavailable", _reason(checks), checks=checks)
    healthy = (
        checks["redis"] == checks["disk"] == "ok" and checks["job_lag_seconds"] < LAGGING_SECONDS
    )
    return JsonResponse({"status": "ok" if healthy else "degraded", "checks": checks})


def _reason(checks: dict[str, Any]) -> Unavailable:
    """Return why the process is not ready.

    A load balancer drains it; its operator reads the reason here.
    """
    if unknown := checks.get("unknown_migrations"):
        return schema.newer_schema(unknown)
    if missing := checks.get("missing_migrations"):
        return schema.older_schema(missing)
    return Unavailable("The database is busy or unreachable.", **checks)


def _unavailable(status: str, error: Unavailable, **checks: Any) -> JsonResponse:
    answer = {"status": status, **checks, "error": error.as_json()}
    return JsonResponse(answer, status=error.status, headers={"Retry-After": str(PATIENCE_SECONDS)})


def ask_all() -> dict[str, Any]:
    has_room = shutil.disk_usage(settings.DATA_DIR).free > FULL_BYTES
    checks = {
        "database": "unavailable",
        "migrations": "unknown",
        "redis": "unavailable",
        "job_lag_seconds": None,
    }
    checks["disk"] = "ok" if has_room else "full"
    questions = [_database.start(), _redis.start()]
    for question in wait_for(questions, timeout=PATIENCE_SECONDS).done:
        checks |= question.result()
    return checks
