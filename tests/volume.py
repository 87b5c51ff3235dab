"""Insert many rows directly into the tables, for tests of plans, where the write path would take
minutes.
"""

import datetime

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from resources_app.models import Epic, Task, TaskLabel

STEP = datetime.timedelta(seconds=1)


def fill_tasks(count: int) -> None:
    owner, _ = User.objects.get_or_create(username="owner")
    now = timezone.now() - count * STEP
    epics = [
        Epic(number=n, title=f"Epic {n}", created_at=now, updated_at=now) for n in range(1, 21)
    ]
    Epic.objects.bulk_create(epics)
    Task.objects.bulk_create(
        (
            Task(
                number=n,
                title=f"Task {n}",
                description=f"Words about {n}",
                status=1 + n % 5,
                priority=n % 5,
                epic_id=1 + n % 20,
                assignee=None if n % 4 else owner,
                labels=[f"label-{n % 50}"],
                due_date=now.date() + datetime.timedelta(days=n % 300) if n % 3 else None,
                created_at=now + n * STEP,
                updated_at=now + n * STEP,
            )
            for n in range(1, count + 1)
        ),
        batch_size=2000,
    )
    TaskLabel.objects.bulk_create(
        (TaskLabel(item_id=n, name=f"label-{n % 50}") for n in range(1, count + 1)), batch_size=5000
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
