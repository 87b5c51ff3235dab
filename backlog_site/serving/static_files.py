"""Serve static files under sync and async Django. The package's middleware is asynchronous only."""

from collections.abc import Callable
from functools import cache
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.utils.decorators import sync_and_async_middleware
from servestatic.middleware import ServeStaticMiddleware


@sync_and_async_middleware
def static_files(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    if iscoroutinefunction(get_response):
        asynchronous: Callable[[HttpRequest], Any] = ServeStaticMiddleware(get_response)
        return asynchronous

    @cache
    def files() -> Callable[[HttpRequest], Any]:
        """Build the middleware lazily: scanning all files is slow, and the running site uses the
        asynchronous one (asgi.py).
        """
        return async_to_sync(ServeStaticMiddleware(sync_to_async(get_response)))

    def serve(request: HttpRequest) -> Any:
        return (
            files()(request)
            if request.path_info.startswith(settings.STATIC_URL)
            else get_response(request)
        )

    return serve
