"""Build the admin dashboard: task counts, recent changes and failed jobs."""

from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.urls import reverse

from resources_app.admin.history import ACTION_COLOURS
from resources_app.admin.items import STATUS_COLOURS
from resources_app.models import Change, Job, Task
from resources_app.vocabulary import Status

RECENT_CHANGES = 10
RECENT_FAILURES = 5


def add_dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    changes = (
        Change.objects.select_related("author").defer("operation").order_by("-id")[:RECENT_CHANGES]
    )
    failed = Job.objects.filter(state=Job.State.FAILED)
    return {
        **context,
        "statuses": _statuses(request),
        "changes": [
            {"change": change, "colour": ACTION_COLOURS.get(change.action, "")}
            for change in changes
        ],
        "failed_jobs": failed.order_by("-created_at", "-id")[:RECENT_FAILURES],
        "failed_count": failed.count(),
    }


def _statuses(request: HttpRequest) -> list[dict[str, Any]]:
    rows = Task.objects.visible_to(request.user).live().order_by()
    counts = dict(rows.values_list("status").annotate(Count("pk")))
    tasks = reverse("admin:resources_app_task_changelist")
    return [
        {
            "title": status.label.replace("_", " "),
            "count": counts.get(status.value, 0),
            "colour": STATUS_COLOURS[status.label.replace("_", " ")],
            "link": f"{tasks}?status__exact={status.value}",
        }
        for status in Status
    ]
