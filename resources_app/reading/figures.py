"""Compute site-wide metrics from the database: job states and IntelligenceBank mirrors."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.db.models import Count
from django.utils import timezone

from resources_app.intelligencebank import metrics
from resources_app.jobs import queue
from resources_app.models import IBConnection, IBSyncRun, Job


@dataclass(frozen=True)
class Figure:
    name: str
    description: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


def site_figures() -> Iterator[Figure]:
    yield Figure("job_lag_seconds", "How long the oldest due job has been waiting", queue.lag())
    counted = (
        Job.objects.values_list("kind", "state")
        .annotate(count=Count("pk"))
        .order_by("kind", "state")
    )
    for kind, state, count in counted:
        yield Figure("jobs", "Jobs of the last 30 days", count, {"kind": kind, "state": state})
    yield from _mirrors()


def _mirrors() -> Iterator[Figure]:
    for connection in IBConnection.objects.order_by("pk"):
        labels = {"client_id": connection.client_id}
        if connection.last_complete_at:
            age = (timezone.now() - connection.last_complete_at).total_seconds()
            yield Figure("ib_age_seconds", "Since the mirror was last complete", age, labels)
        for what, count in metrics.counted(connection.client_id).items():
            yield Figure(
                "ib_counted",
                "Thumbnails from the cache or not, refused logins",
                count,
                labels | {"what": what},
            )
        if run := connection.runs.order_by("-pk").first():
            yield from _of_run(run, labels)


def _of_run(run: IBSyncRun, labels: dict[str, str]) -> Iterator[Figure]:
    until = run.finished_at or run.heartbeat_at
    seconds = (until - run.started_at).total_seconds()
    yield Figure(
        "ib_run_seconds",
        "Duration of the last run",
        seconds,
        labels | {"kind": run.kind, "status": run.status},
    )
    for name, value in sorted(run.counters.items()):
        if isinstance(value, int | float):
            yield Figure("ib_run", "What the last run counted", value, labels | {"what": name})
