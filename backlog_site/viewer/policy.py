"""Set the Content-Security-Policy of every response.

Pages run only scripts of this site; the admin's framework needs more.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase

HEADER = "Content-Security-Policy"
STRICT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self';"
    " connect-src 'self'; form-action 'self'; frame-src 'self'; manifest-src 'self';"
    " frame-ancestors 'none'; base-uri 'none'"
)
# django-unfold evaluates expressions in attributes; Swagger writes styles.
ADMIN = (
    "default-src 'self'; script-src 'self' 'unsafe-eval' 'unsafe-inline'; style-src 'self'"
    " 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'self'"
)
API_DOCS = STRICT.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace(
    "img-src 'self'", "img-src 'self' data:"
)


class ContentSecurityPolicyMiddleware:
    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self._is_async = iscoroutinefunction(get_response)
        if self._is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return (
            self._call_async(request)
            if self._is_async
            else _with_policy(request, self.get_response(request))
        )

    async def _call_async(self, request: HttpRequest) -> HttpResponseBase:
        return _with_policy(request, await self.get_response(request))


def _with_policy(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Set the policy unless the view has set one."""
    response.headers.setdefault(HEADER, _policy_for(request.path))
    return response


def _policy_for(path: str) -> str:
    if path.startswith("/admin/"):
        return ADMIN
    return API_DOCS if path.startswith("/api/docs/") else STRICT
