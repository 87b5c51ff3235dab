"""Test /metrics: admins only, with the events that happened."""

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from backlog_site.serving import metrics
from backlog_site.serving.metrics import measured_tool, surface_of
from resources_app.jobs import queue
from resources_app.models import IBConnection
from resources_app.reading import figures
from tests.api.clients import ApiClient

pytestmark = pytest.mark.django_db


def samples(user: User) -> dict[tuple[str, ...], float]:
    response = ApiClient(user).get("/metrics")
    assert response.status_code == 200, response.content
    families = text_string_to_metric_families(response.content.decode())
    return {
        (one.name, *one.labels.values()): one.value for family in families for one in family.samples
    }


def test_only_admins_read_them(
    alice: User, bob: User, carol: User, mallory: User, client: Client
) -> None:
    for caller in (ApiClient(alice), ApiClient(bob), ApiClient(carol, "read")):
        assert caller.get("/metrics").status_code == 403
    assert ApiClient(None).get("/metrics").status_code == 401
    client.force_login(mallory)
    assert client.get("/metrics").status_code == 403


def test_jobs_and_their_lag_are_told(carol: User) -> None:
    queue.enqueue("prune", {}, run_at=timezone.now() - timezone.timedelta(minutes=5))
    found = samples(carol)
    assert found["backlog_jobs", "prune", "pending"] == 1
    assert found["backlog_job_lag_seconds",] >= 300


def test_the_last_run_of_each_mirror_is_told(carol: User) -> None:
    now = timezone.now()
    connection = IBConnection.objects.create(
        client_id="x1", name="X", platform_url="https://x", last_complete_at=now
    )
    times = {
        "started_at": now,
        "heartbeat_at": now,
        "finished_at": now + timezone.timedelta(seconds=7),
    }
    connection.runs.create(
        kind="full", generation=1, status="failed", counters={"rows": 1}, **times
    )
    connection.runs.create(
        kind="full", generation=2, status="complete", counters={"rows": 40, "calls": 3}, **times
    )
    found = samples(carol)
    assert found["backlog_ib_run_seconds", "x1", "full", "complete"] == 7
    assert (found["backlog_ib_run", "x1", "rows"], found["backlog_ib_run", "x1", "calls"]) == (
        40,
        3,
    )
    assert ("backlog_ib_age_seconds", "x1") in found


def test_tools_are_counted_by_how_they_ended(carol: User) -> None:
    with measured_tool("some_tool") as note:
        note("ok")
    with measured_tool("some_tool") as note:
        note("conflict")
    with pytest.raises(ValueError, match="broken"), measured_tool("some_tool"):
        raise ValueError("broken")
    found = samples(carol)
    counts = [
        found["backlog_tool_calls_total", outcome, "some_tool"]
        for outcome in ("ok", "conflict", "error")
    ]
    assert counts == [1, 1, 1]
    assert found["backlog_tool_seconds_count", "some_tool"] == 3


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        ("/mcp", "mcp"),
        ("/api/v1/events/", "events"),
        ("/api/v1/tasks/", "rest"),
        ("/board/", "viewer"),
        ("/o/token/", "oauth"),
    ],
)
def test_a_path_belongs_to_a_surface(path: str, surface: str) -> None:
    assert surface_of(path) == surface


def test_the_dashboard_asks_only_for_what_there_is(carol: User) -> None:
    dashboard = json.loads((settings.BASE_DIR / "docs/grafana.json").read_text())
    asked = {
        name
        for panel in dashboard["panels"]
        for name in re.findall(r"\bbacklog_\w+", panel["targets"][0]["expr"])
    }
    told = "\n".join(path.read_text() for path in map(Path, (metrics.__file__, figures.__file__)))
    for name in asked:
        stem = re.sub(r"_(total|bucket)$", "", name)
        assert f'"{stem}"' in told or f'"{stem.removeprefix("backlog_")}"' in told, name
