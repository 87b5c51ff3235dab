"""The Celery task of search: looks for texts without vectors, and leaves a Job row where there are some."""

from celery import shared_task

from search_app.semantic import worker


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def embed_pending() -> None:
    worker.enqueue_if_pending()
