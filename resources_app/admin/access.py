"""Manage users, groups, service accounts and API tokens."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesCheckboxFilter
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
)

from resources_app.admin.base import AdminOnly, Refusable, column, moment
from resources_app.admin.forms import RefusableForm
from resources_app.identity import service_accounts, tokens
from resources_app.identity.roles import ROLES
from resources_app.models import ApiToken, ServiceAccount

TOKEN_COLOURS = {"usable": "success", "expired": "warning", "revoked": "danger"}

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, AdminOnly):  # type: ignore[type-arg,misc]  # not generic at run time
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = [
        "username",
        "first_name",
        "last_name",
        "roles",
        "is_active",
        "is_staff",
        "last_seen",
    ]
    list_filter = ["is_active", "is_staff", "groups"]
    filter_horizontal = ()
    autocomplete_fields = ["groups"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        users: QuerySet[User] = super().get_queryset(request)
        return users.prefetch_related("groups")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Prevent other admins from taking over a superuser's account."""
        beyond = isinstance(obj, User) and obj.is_superuser and not request.user.is_superuser
        return AdminOnly.has_change_permission(self, request, obj) and not beyond

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Forbid deletion: histories name their authors forever, so accounts are deactivated
        instead.
        """
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        kept = ["last_login", "date_joined"]
        return kept if request.user.is_superuser else [*kept, "is_superuser"]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        if obj is None:
            return self.add_fieldsets
        return [
            (None, {"fields": ["username", "password"]}),
            ("Person", {"fields": ["first_name", "last_name", "email"]}),
            (
                "Role",
                {
                    "description": (
                        "A role is a group: viewer, contributor, admin. Admins also need staff"
                        " status."
                    ),
                    "fields": ["groups", "is_active", "is_staff", "is_superuser"],
                },
            ),
            ("Dates", {"fields": ["last_login", "date_joined"]}),
        ]

    @column("Groups")
    def roles(self, user: User) -> str:
        return ", ".join(sorted(group.name for group in user.groups.all())) or "–"

    @column("Last seen", ordering="last_login")
    def last_seen(self, user: User) -> SafeString | str:
        return moment(user.last_login)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, AdminOnly):  # type: ignore[misc]  # unfold has no types
    """Manage groups.

    Members are set on the users. The backlog relies on the names of the three roles.
    """

    list_display = ["name", "is_role"]
    fields = ["name"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return AdminOnly.has_change_permission(self, request, obj) and not self._names_a_role(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return AdminOnly.has_delete_permission(self, request, obj) and not self._names_a_role(obj)

    @column("Role", boolean=True)
    def is_role(self, group: Group) -> bool:
        return self._names_a_role(group)

    def _names_a_role(self, group: Any) -> bool:
        return isinstance(group, Group) and group.name in ROLES


class ServiceAccountForm(RefusableForm):
    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    role = forms.ChoiceField(
        choices=[(role, role) for role in ROLES], widget=UnfoldAdminSelectWidget
    )

    class Meta:
        model = ServiceAccount
        fields = ["owner", "purpose"]


@admin.register(ServiceAccount)
class ServiceAccountAdmin(Refusable):
    """Manage unattended agents. To end one, deactivate its user."""

    form = ServiceAccountForm
    list_display = ["user", "roles", "owner", "purpose", "is_active"]
    list_select_related = ["user", "owner"]
    ordering = ["user__username"]
    search_fields = ["user__username", "purpose"]
    autocomplete_fields = ["owner"]
    fields = ["user", "roles", "owner", "purpose", "is_active"]
    add_fieldsets = [(None, {"fields": ["username", "role", "owner", "purpose"]})]

    def get_queryset(self, request: HttpRequest) -> QuerySet[ServiceAccount]:
        accounts: QuerySet[ServiceAccount] = super().get_queryset(request)
        return accounts.prefetch_related("user__groups")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.add_fieldsets if obj is None else [(None, {"fields": self.fields})]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(
        self, request: HttpRequest, obj: ServiceAccount, form: Any, change: bool
    ) -> None:
        obj.pk = service_accounts.create(**form.cleaned_data).pk
        obj.refresh_from_db()

    @column("Roles")
    def roles(self, account: ServiceAccount) -> str:
        return ", ".join(sorted(group.name for group in account.user.groups.all())) or "–"

    @column("Active", boolean=True)
    def is_active(self, account: ServiceAccount) -> bool:
        return account.user.is_active


class TokenForm(RefusableForm):
    expires_in_days = forms.IntegerField(
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Empty: until it is revoked.",
    )

    class Meta:
        model = ApiToken
        fields = ["user", "name", "scope"]


@admin.register(ApiToken)
class ApiTokenAdmin(Refusable):
    form = TokenForm
    list_display = ["name", "user", "scope", "state", "created", "expires", "last_used"]
    list_select_related = ["user"]
    list_filter = [("user", AutocompleteSelectFilter), ("scope", ChoicesCheckboxFilter)]
    ordering = ["-id"]
    search_fields = ["name", "user__username"]
    autocomplete_fields = ["user"]
    actions = ["revoke"]
    fields = ["name", "user", "scope", "state", "created", "expires", "last_used"]
    add_fieldsets = [(None, {"fields": ["user", "name", "scope", "expires_in_days"]})]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Forbid deletion: a revoked token stays as a record of access."""
        return False

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        token, secret = tokens.create(**form.cleaned_data)
        obj.pk = token.pk
        obj.refresh_from_db()
        messages.warning(request, f"Copy the token now, it is not shown again: {secret}")

    @admin.action(description="Revoke")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        usable = list(queryset.filter(revoked_at__isnull=True))
        for token in usable:
            tokens.revoke(token)
            self.log_change(request, token, "Revoked.")
        messages.success(
            request, f"Revoked {len(usable)} API token{'' if len(usable) == 1 else 's'}."
        )

    @column("State", colours=TOKEN_COLOURS)
    def state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return "revoked"
        return "expired" if token.expires_at and token.expires_at <= timezone.now() else "usable"

    @column("Created", ordering="created_at")
    def created(self, token: ApiToken) -> SafeString | str:
        return moment(token.created_at)

    @column("Expires", ordering="expires_at")
    def expires(self, token: ApiToken) -> SafeString | str:
        return moment(token.expires_at)

    @column("Last used", ordering="last_used_at")
    def last_used(self, token: ApiToken) -> SafeString | str:
        return moment(token.last_used_at)
