"""Compose the site from settings, REST, admin and processes."""

from backlog_site.celery import app as celery_app
from backlog_site.serving.allocator import give_memory_back

give_memory_back()

__all__ = ["celery_app"]
