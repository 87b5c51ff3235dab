"""Run search's Celery task: look for texts without vectors, and add a Job row if there are any."""

from celery import shared_task

from search_app.semantic import worker


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def embed_pending() -> None:
    worker.enqueue_if_pending()
