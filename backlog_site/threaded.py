"""Django under ASGI with one change of threads for a request; the reasons are in docs/decisions/0012-serving-layout.md."""

from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from backlog_site.mcp.threads import DatabaseThreads

# More than will wait for a lock at once, so that reads find one.
_threads = DatabaseThreads(40, "site-database")


class ThreadedSite(ASGIHandler):
    """Django's own changes threads for each middleware, and opens a database connection for each request."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await _threads.run(self.get_response, request)
