"""Restrict the admin site to staff with the admin role."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from unfold.sites import UnfoldAdminSite

from resources_app.identity.roles import is_admin

NEEDS_ROLE = "The admin needs the admin role, which your account does not have."
NEEDS_STAFF = (
    "Your account has the admin role, but its staff status is off. Another admin can turn it on."
)


class BacklogAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    index_template = "admin/backlog/index.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_staff and is_admin(request.user)

    def admin_view(
        self, view: Callable[..., HttpResponse], cacheable: bool = False
    ) -> Callable[..., HttpResponse]:
        answer: Callable[..., HttpResponse] = super().admin_view(view, cacheable)

        @wraps(answer)
        def for_admins(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            self._refuse_signed_in(request)
            return answer(request, *args, **kwargs)

        return for_admins

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if request.method == "GET":
            self._refuse_signed_in(request)
        response: HttpResponse = super().login(request, extra_context)
        return response

    def _refuse_signed_in(self, request: HttpRequest) -> None:
        """Raise PermissionDenied for a user who would not gain access by signing in again."""
        if request.user.is_authenticated and not self.has_permission(request):
            raise PermissionDenied(NEEDS_STAFF if is_admin(request.user) else NEEDS_ROLE)
