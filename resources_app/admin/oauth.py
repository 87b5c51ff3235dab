"""Manage OAuth clients and grants.

These pages replace the package's own, which show more than we use, in another style.
"""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from oauth2_provider.models import AccessToken, Application, Grant, IDToken, RefreshToken
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from resources_app.admin.base import ReadOnly, column, moment
from resources_app.identity import oauth_grants

for model in (AccessToken, Application, Grant, IDToken, RefreshToken):
    admin.site.unregister(model)


@admin.register(Application)
class OAuthClientAdmin(ReadOnly):
    list_display = ["name", "client_id", "source", "granted", "registered"]
    ordering = ["-id"]
    search_fields = ["name", "client_id"]
    fields = ["name", "client_id", "source", "redirect_uris", "granted", "registered"]
    actions = ["forget"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        live = Q(accesstoken__expires__gt=timezone.now(), accesstoken__user__isnull=False)
        clients: QuerySet[Any] = (
            super().get_queryset(request).annotate(live=Count("accesstoken", filter=live))
        )
        return clients

    @admin.action(description="Forget, and end every access")
    def forget(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        clients = list(queryset)
        self.log_deletions(request, clients)
        for client in clients:
            oauth_grants.forget(client)
        messages.success(
            request, f"Forgot {len(clients)} OAuth client{'' if len(clients) == 1 else 's'}."
        )

    @column("Known by")
    def source(self, client: Any) -> str:
        return str(client.registration_source or "an admin")

    @column("Live tokens", ordering="live")
    def granted(self, client: Any) -> str:
        return str(client.live)

    @column("Since", ordering="created")
    def registered(self, client: Any) -> SafeString | str:
        return moment(client.created)


@admin.register(AccessToken)
class OAuthTokenAdmin(ReadOnly):
    """Show which user authorized which client, with which scope."""

    list_display = ["application", "user", "scope", "issued", "ends"]
    list_select_related = ["application", "user"]
    list_filter = [("user", AutocompleteSelectFilter)]
    ordering = ["-id"]
    search_fields = ["application__name", "user__username"]
    fields = ["application", "user", "scope", "resource", "issued", "ends"]
    actions = ["revoke"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Exclude the tokens with which clients manage their own registration."""
        tokens: QuerySet[Any] = super().get_queryset(request)
        return tokens.filter(user__isnull=False)

    @admin.action(description="Revoke, and the right to refresh")
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        tokens = list(queryset)
        for token in tokens:
            self.log_change(request, token, "Revoked.")
            oauth_grants.revoke(token)
        messages.success(
            request, f"Revoked {len(tokens)} access token{'' if len(tokens) == 1 else 's'}."
        )

    @column("Issued", ordering="created")
    def issued(self, token: Any) -> SafeString | str:
        return moment(token.created)

    @column("Expires", ordering="expires")
    def ends(self, token: Any) -> SafeString | str:
        return moment(token.expires)
