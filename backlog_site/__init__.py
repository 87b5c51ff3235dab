"""Composition root and adapters: settings, REST, admin, processes."""

from backlog_site.allocator import give_memory_back
from backlog_site.celery import app as celery_app

give_memory_back()

__all__ = ["celery_app"]
