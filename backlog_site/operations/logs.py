"""Configure structured logs: one line per request, none for probes, no secrets."""

import logging
import os
import time
from http import HTTPStatus
from typing import Any

import structlog
from django.http import HttpRequest
from django_structlog.middlewares import RequestMiddleware

from backlog_site.operations.log_scrubbing import scrub

_SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.StackInfoRenderer(),
]


logger = structlog.get_logger("backlog.requests")


def logged(application: Any) -> Any:
    """Write one line for each call of REST and /mcp for which Django has not written one.

    The surfaces add fields that only they have, such as the user and the tool, to `scope["line"]`.
    """

    async def logged_application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(("/api/", "/mcp")):
            await application(scope, receive, send)
            return
        line: dict[str, Any] = {"method": scope["method"], "path": scope["path"], "status": None}
        began = time.perf_counter()

        async def send_and_note(message: Any) -> None:
            if message["type"] == "http.response.start":
                line["status"] = message["status"]
            await send(message)

        try:
            await application({**scope, "line": line}, receive, send_and_note)
        finally:
            if not line.pop("is_written", False):
                logger.info("request_finished", **line, duration_ms=_milliseconds(began))

    return logged_application


class RequestLines(RequestMiddleware):
    def __call__(self, request: Any) -> Any:
        request.began = time.perf_counter()
        return super().__call__(request)

    def handle_response(self, request: Any, response: Any) -> None:
        self._bind(request, response.status_code)
        super().handle_response(request, response)

    def process_got_request_exception(self, sender: type[Any], request: Any, **kwargs: Any) -> None:
        self._bind(request, HTTPStatus.INTERNAL_SERVER_ERROR)
        super().process_got_request_exception(sender, request, **kwargs)

    def _bind(self, request: Any, status: int) -> None:
        began = getattr(request, "began", None)
        duration = {} if began is None else {"duration_ms": _milliseconds(began)}
        structlog.contextvars.bind_contextvars(
            method=request.method, path=request.path, status=int(status), **duration
        )
        getattr(request, "scope", {}).get("line", {})["is_written"] = True

    @classmethod
    def bind_ip(cls, request: HttpRequest) -> None:
        """Bind the address found by the gate.

        A header that clients can write is not trusted here either.
        """
        structlog.contextvars.bind_contextvars(ip=request.META.get("REMOTE_ADDR"))


def _milliseconds(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)


def structured_logs(*, is_for_eyes: bool, level: str) -> dict[str, Any]:
    """Return the LOGGING setting. Without a level each logger has its default."""
    structlog.configure(
        # Filter first, so that suppressed events cost nothing.
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "filters": {
            "one_line": {"()": "django.utils.log.CallbackFilter", "callback": _is_worth_a_line}
        },
        "disable_existing_loggers": False,
        "formatters": {"structured": _formatter(is_for_eyes)},
        # stderr, because stdout carries command output and MCP over stdio.
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": "structured",
                "filters": ["one_line"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level or "WARNING"},
        "loggers": {
            # The server configures these before it loads us; they too pass through the formatter
            # that hides secrets.
            "uvicorn": {"handlers": [], "propagate": True},
            "uvicorn.error": {"handlers": [], "propagate": True},
            # Our request line is enough.
            "uvicorn.access": {"handlers": [], "propagate": False},
            "backlog": {"level": level or "INFO"},
            "django_structlog": {"level": level or "INFO"},
            "django_structlog.celery": {"level": level or "WARNING"},
            # They log URLs and headers, which carry sessions.
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
        },
    }


def _console() -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(colors=not os.environ.get("NO_COLOR"))


def _formatter(is_for_eyes: bool) -> dict[str, Any]:
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": _SHARED,
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            scrub,
            _console() if is_for_eyes else structlog.processors.JSONRenderer(),
        ],
    }


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Return False for the probes that come every few seconds."""
    event = record.msg if isinstance(record.msg, dict) else {}
    return event.get("request") not in {"GET /healthz", "GET /readyz"}
