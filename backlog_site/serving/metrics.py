"""Expose metrics to Prometheus at /metrics: requests, tools and streams of this process; jobs and
mirrors from the database.
"""

import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from resources_app.reading.figures import Figure, site_figures

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Message, Receive, Send], Awaitable[None]]

# By path prefix; any other path is a page of the viewer.
SURFACES = {
    "/mcp": "mcp",
    "/api/v1/events/": "events",
    "/api/": "rest",
    "/admin": "admin",
    "/o/": "oauth",
    "/.well-known/": "oauth",
    "/static/": "static",
    "/healthz": "health",
    "/readyz": "health",
    "/metrics": "health",
}
SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

registry = CollectorRegistry()
ProcessCollector(registry=registry)
PlatformCollector(registry=registry)
_requests = Counter(
    "backlog_requests", "Answered requests", ["surface", "status"], registry=registry
)
_seconds = Histogram(
    "backlog_request_seconds", "To the first byte", ["surface"], buckets=SECONDS, registry=registry
)
_streams = Gauge("backlog_streams", "Answers that are still open", ["surface"], registry=registry)
_tools = Counter("backlog_tool_calls", "Calls of MCP tools", ["tool", "outcome"], registry=registry)
_tool_seconds = Histogram(
    "backlog_tool_seconds", "MCP tools", ["tool"], buckets=SECONDS, registry=registry
)


def measured(application: Application) -> Application:
    async def measured_application(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            surface = surface_of(scope["path"])
            with _streams.labels(surface).track_inprogress():
                await application(scope, receive, _noting(send, surface))
        else:
            await application(scope, receive, send)

    return measured_application


def surface_of(path: str) -> str:
    return next(
        (surface for beginning, surface in SURFACES.items() if path.startswith(beginning)), "viewer"
    )


def _noting(send: Send, surface: str) -> Send:
    """Record the time to the start of the response. A stream may last for hours."""
    began = time.perf_counter()

    async def send_and_note(message: Message) -> None:
        if message["type"] == "http.response.start":
            _seconds.labels(surface).observe(time.perf_counter() - began)
            _requests.labels(surface, f"{message['status'] // 100}xx").inc()
        await send(message)

    return send_and_note


@contextmanager
def measured_tool(name: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that takes the outcome.

    Without one, or when the block raises, the outcome is an error.
    """
    outcomes = ["error"]
    try:
        with _tool_seconds.labels(name).time():
            yield outcomes.append
    finally:
        _tools.labels(name, outcomes[-1]).inc()


def exposition() -> bytes:
    return generate_latest(registry) + generate_latest(_Site())


class _Site:
    """Collect the site's figures at every scrape, in the process that answers it."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for figure in site_figures():
            family = families.setdefault(figure.name, _family(figure))
            family.add_metric(list(figure.labels.values()), figure.value)
        yield from families.values()


def _family(figure: Figure) -> GaugeMetricFamily:
    return GaugeMetricFamily(
        f"backlog_{figure.name}", figure.description, labels=list(figure.labels)
    )
