"""Configure the Celery application.

Messages only wake workers; the work is in Job rows (resources_app/jobs/queue.py).
"""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_ready
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport.redis import Channel

from backlog_site.serving.presence import announce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")

# While Redis is down, kombu fails to restore messages and the worker would exit. Messages only
# wake; the rows stay.
Channel.do_restore = False

app = Celery("backlog")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def keep_django_logging(**_: Any) -> None:
    """Keep Django's logging. Without a receiver Celery replaces it."""


@worker_ready.connect  # type: ignore[untyped-decorator]  # celery has no types
def announce_worker(**_: Any) -> None:
    announce("worker")


@beat_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def announce_beat(**_: Any) -> None:
    announce("beat")
