"""The Celery application. It only wakes workers: what there is to do is a Job row (resources_app/jobs/queue.py)."""

import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_ready
from django_structlog.celery.steps import DjangoStructLogInitStep
from kombu.transport.redis import Channel

from backlog_site.serving.presence import announce

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")

# While Redis is away kombu fails at putting messages back, and the worker would end. They only wake; the rows stay.
Channel.do_restore = False

app = Celery("backlog")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.steps["worker"].add(DjangoStructLogInitStep)


@setup_logging.connect  # type: ignore[untyped-decorator]  # celery has no types
def keep_django_logging(**_: Any) -> None:
    """Without a receiver Celery replaces the logging configured by Django."""


@worker_ready.connect  # type: ignore[untyped-decorator]  # celery has no types
def announce_worker(**_: Any) -> None:
    announce("worker")


@beat_init.connect  # type: ignore[untyped-decorator]  # celery has no types
def announce_beat(**_: Any) -> None:
    announce("beat")
