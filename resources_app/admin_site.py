"""The admin's site: only staff who hold the admin role come in."""

from django.http import HttpRequest
from unfold.sites import UnfoldAdminSite

from resources_app.access import is_admin


class BacklogAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    index_template = "admin/backlog/index.html"

    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_staff and is_admin(request.user)
