"""Composition root and adapters: settings, REST, admin, processes."""

from backlog_site.celery import app as celery_app

__all__ = ["celery_app"]
