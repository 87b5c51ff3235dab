"""Query scheduled work: when it last began, and when it is due."""

import datetime
from dataclasses import dataclass
from typing import Any

from celery.schedules import crontab
from django.conf import settings
from django.db.models import Max
from django.utils import timezone

from resources_app.identity.roles import Person
from resources_app.models import IBConnection, Job
from resources_app.reading.system import UNSHOWN_JOBS

# No interval is longer than a week, so older jobs need not be read.
_LONGEST = datetime.timedelta(days=8)
_SCHEDULES_JOBS = "resources_app.tasks.enqueue_scheduled"


@dataclass(frozen=True)
class Planned:
    kind: str
    last: datetime.datetime | None
    due: datetime.datetime


def planned(user: Person) -> list[Planned]:
    """Return the schedule. IntelligenceBank jobs are included only if there is a connection."""
    has_library = IBConnection.objects.visible_to(user).exists()
    times = {
        kind: when for kind, when in _times().items() if has_library or not kind.startswith("ib_")
    }
    recent = Job.objects.filter(kind__in=times, created_at__gt=timezone.now() - _LONGEST)
    last = dict(recent.order_by().values_list("kind").annotate(begun=Max("created_at")))
    rows = [
        Planned(kind, last.get(kind), _due(when, last.get(kind))) for kind, when in times.items()
    ]
    return sorted(rows, key=lambda row: row.due)


def _times() -> dict[str, Any]:
    jobs = [
        entry
        for entry in settings.CELERY_BEAT_SCHEDULE.values()
        if entry["task"] == _SCHEDULES_JOBS
    ]
    return {
        kind: entry["schedule"] for entry in jobs if (kind := entry["args"][0]) not in UNSHOWN_JOBS
    }


def _due(when: crontab | float, last: datetime.datetime | None) -> datetime.datetime:
    """Return when a job is due.

    A job that has never run is due one interval from now at the latest.
    """
    now = timezone.now()
    if isinstance(when, crontab):
        left: datetime.timedelta = when.remaining_estimate(now)
        return now + left
    return (last or now) + datetime.timedelta(seconds=when)
