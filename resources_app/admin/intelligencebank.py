"""Manage IntelligenceBank connections and runs.

Admins see mirrored objects only as far as their own rights allow.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesCheckboxFilter, FieldTextFilter
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from resources_app.admin.base import ReadOnly, Refusable, column, moment, preformatted
from resources_app.admin.forms import RefusableForm
from resources_app.intelligencebank import connections, linking
from resources_app.intelligencebank.limiting import spent_today
from resources_app.intelligencebank.sync import refreshing, runs, scheduling
from resources_app.intelligencebank.sync.advice import ADVICE
from resources_app.models import (
    IBConnection,
    IBEntitlement,
    IBFolder,
    IBLink,
    IBQuarantine,
    IBResource,
    IBSyncRun,
)

STATE_COLOURS = {"ok": "success", "auth_required": "danger", "tripped": "danger"}
RUN_COLOURS = {
    **{"running": "warning", "paused": "info", "complete": "success", "incomplete": "warning"},
    **{"failed": "danger", "auth_required": "danger", "tripped": "danger"},
}
_FACTS = (
    "name",
    "platform_url",
    "is_enabled",
    "calls_per_minute",
    "daily_budget",
    "rights_seconds",
)


class ConnectionForm(RefusableForm):
    """Accept secrets but never show them.

    On an existing connection an empty value means unchanged.
    """

    own_domains = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="With commas, beside *.intelligencebank.com",
    )
    email = forms.CharField(
        required=False, widget=UnfoldAdminTextInputWidget, help_text="Of the mirroring account"
    )
    password = forms.CharField(
        required=False, widget=UnfoldAdminPasswordWidget, help_text="Sealed; never shown again"
    )
    product_key = forms.CharField(required=False, widget=UnfoldAdminPasswordWidget)

    class Meta:
        model = IBConnection
        fields = ["client_id", *_FACTS]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["own_domains"].initial = ", ".join(self.instance.domains)

    def facts(self) -> dict[str, Any]:
        given = {name: self.cleaned_data[name] for name in _FACTS}
        domains = [
            part.strip() for part in self.cleaned_data["own_domains"].split(",") if part.strip()
        ]
        return given | {"domains": domains}

    def secrets(self) -> dict[str, str]:
        return {name: self.cleaned_data[name] for name in ("email", "password", "product_key")}


@admin.register(IBConnection)
class IBConnectionAdmin(Refusable):
    form = ConnectionForm
    list_display = [
        "client_id",
        "name",
        "coloured_state",
        "is_enabled",
        "mirrored",
        "calls_today",
        "last_complete",
    ]
    search_fields = ["client_id", "name"]
    ordering = ["client_id"]
    actions = ["sync_now", "sync_fully", "reconcile", "accept"]
    readonly_fields = [
        "coloured_state",
        "state_reason",
        "mirrored",
        "calls_today",
        "last_full",
        "last_complete",
    ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        tenant = ["name", "platform_url", "own_domains", "is_enabled"]
        limits = ["calls_per_minute", "daily_budget", "rights_seconds"]
        shown: list[Any] = [
            ("Tenant", {"fields": ["client_id", *tenant]}),
            ("Mirroring account", {"fields": ["email", "password", "product_key"]}),
            ("Limits", {"fields": limits}),
        ]
        return [*shown, ("Standing", {"fields": self.readonly_fields})] if obj else shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["client_id", *self.readonly_fields] if obj else self.readonly_fields

    def save_model(self, request: HttpRequest, obj: IBConnection, form: Any, change: bool) -> None:
        if change:
            connections.change(obj, **form.facts())
            if form.cleaned_data["password"]:
                connections.change_credentials(obj, **form.secrets())
        else:
            facts = form.facts()
            created = connections.create(form.cleaned_data["client_id"], **facts, **form.secrets())
            obj.pk = created.pk
            obj.refresh_from_db()
            scheduling.request_run(created, runs.Kind.FULL, request.user)

    @admin.action(description="Sync what changed")
    def sync_now(self, request: HttpRequest, queryset: QuerySet[IBConnection]) -> None:
        self._start(request, queryset, runs.Kind.INCREMENTAL)

    @admin.action(description="Sync everything")
    def sync_fully(self, request: HttpRequest, queryset: QuerySet[IBConnection]) -> None:
        self._start(request, queryset, runs.Kind.FULL)

    @admin.action(description="Look for deletions")
    def reconcile(self, request: HttpRequest, queryset: QuerySet[IBConnection]) -> None:
        self._start(request, queryset, runs.Kind.RECONCILE)

    @admin.action(description="Confirm deletions after review")
    def accept(self, request: HttpRequest, queryset: QuerySet[IBConnection]) -> None:
        for connection in queryset:
            accepted = runs.accept_last_trip(connection)
            messages.success(
                request, f"The next complete run of {connection} may hide {accepted} rows."
            )

    def _start(self, request: HttpRequest, queryset: QuerySet[IBConnection], kind: str) -> None:
        for connection in queryset:
            run = scheduling.request_run(connection, kind, request.user)
            messages.success(request, f"Run {run.pk} ({run.kind}) of {connection} is under way.")

    @column("State", ordering="state", colours=STATE_COLOURS)
    def coloured_state(self, connection: IBConnection) -> str:
        return connection.state

    @column("Resources")
    def mirrored(self, connection: IBConnection) -> int:
        return IBResource.objects.filter(connection=connection, missing_since__isnull=True).count()

    @column("Calls today")
    def calls_today(self, connection: IBConnection) -> str:
        spent = spent_today(connection)
        return f"{'?' if spent is None else spent} of {connection.daily_budget}"

    @column("Last full run")
    def last_full(self, connection: IBConnection) -> SafeString | str:
        return moment(connection.last_full_at)

    @column("Last complete run", ordering="last_complete_at")
    def last_complete(self, connection: IBConnection) -> SafeString | str:
        return moment(connection.last_complete_at)


@admin.register(IBSyncRun)
class IBSyncRunAdmin(ReadOnly):
    list_display = [
        "number",
        "connection",
        "kind",
        "coloured_status",
        "rows",
        "calls",
        "stage",
        "started",
        "finished",
    ]
    list_select_related = ["connection"]
    list_filter = [("status", ChoicesCheckboxFilter), ("kind", ChoicesCheckboxFilter)]
    ordering = ["-started_at", "-id"]
    actions = ["again"]
    fields = [
        "connection",
        "kind",
        "coloured_status",
        "error",
        "advice",
        "generation",
        "stage",
        "resumes",
    ]
    fields += ["started", "beat", "finished", "counted", "place"]

    @admin.action(description="Go on, or run again")
    def again(self, request: HttpRequest, queryset: QuerySet[IBSyncRun]) -> None:
        for run in queryset.select_related("connection"):
            started = scheduling.request_run(run.connection, run.kind, request.user)
            messages.success(
                request, f"Run {started.pk} ({started.kind}) of {run.connection} is under way."
            )

    @column("No.", ordering="id")
    def number(self, run: IBSyncRun) -> str:
        return str(run.pk)

    @column("Status", ordering="status", colours=RUN_COLOURS)
    def coloured_status(self, run: IBSyncRun) -> str:
        return run.status

    @column("What to do")
    def advice(self, run: IBSyncRun) -> str:
        return ADVICE.get(run.status, "–")

    @column("Rows")
    def rows(self, run: IBSyncRun) -> int:
        return int(run.counters.get("rows", 0))

    @column("Calls")
    def calls(self, run: IBSyncRun) -> int:
        return int(run.counters.get("calls", 0))

    @column("Stage")
    def stage(self, run: IBSyncRun) -> str:
        return str(run.checkpoint.get("stage", "–"))

    @column("Started", ordering="started_at")
    def started(self, run: IBSyncRun) -> SafeString | str:
        return moment(run.started_at)

    @column("Last sign of life")
    def beat(self, run: IBSyncRun) -> SafeString | str:
        return moment(run.heartbeat_at)

    @column("Goes on")
    def resumes(self, run: IBSyncRun) -> SafeString | str:
        return moment(run.resume_at)

    @column("Finished", ordering="finished_at")
    def finished(self, run: IBSyncRun) -> SafeString | str:
        return moment(run.finished_at)

    @column("Counters")
    def counted(self, run: IBSyncRun) -> SafeString | str:
        return preformatted(run.counters)

    @column("Place")
    def place(self, run: IBSyncRun) -> SafeString | str:
        return preformatted(run.checkpoint)


class _MirroredAdmin(ReadOnly):
    """List only what this admin may see in IntelligenceBank.

    The admin role grants nothing there.
    """

    ordering = ["sort_name", "ib_id"]
    search_fields = ["ib_id", "name"]
    list_filter = [("client_id", FieldTextFilter)]
    actions = ["look_again"]

    @admin.action(description="Look at it again now")
    def look_again(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for thing in queryset:
            refreshing.request_refresh(thing)
        messages.success(request, "IntelligenceBank is being asked.")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model.objects.entitled_to(request.user)
        return rows.order_by(*self.ordering)

    @column("State")
    def standing(self, thing: IBFolder | IBResource) -> str:
        if thing.tombstoned_at:
            return "tombstoned"
        return "missing" if thing.missing_since else "present"


@admin.register(IBFolder)
class IBFolderAdmin(_MirroredAdmin):
    list_display = [
        "name",
        "client_id",
        "ib_id",
        "depth",
        "folders_count",
        "resources_count",
        "hidden",
        "standing",
    ]
    fields = [
        "client_id",
        "ib_id",
        "name",
        "description",
        "parent_ib_id",
        "depth",
        "hidden",
        "standing",
    ]
    fields += ["folders_count", "resources_count", "generation", "version"]


@admin.register(IBResource)
class IBResourceAdmin(_MirroredAdmin):
    list_display = [
        "name",
        "client_id",
        "ib_id",
        "mime_type",
        "size",
        "standing",
        "source_updated_at",
    ]
    fields = [
        "client_id",
        "ib_id",
        "name",
        "description",
        "tags",
        "folder_ib_id",
        "mime_type",
        "file_name",
        "size",
    ]
    fields += [
        "creator",
        "updater",
        "source_created_at",
        "source_updated_at",
        "generation",
        "version",
        "standing",
    ]


@admin.register(IBLink)
class IBLinkAdmin(ReadOnly):
    list_display = ["user", "connection", "person", "expires", "read", "error"]
    list_select_related = ["user", "connection"]
    search_fields = ["user__username", "connection__client_id"]
    ordering = ["-id"]
    actions = ["read_again"]
    fields = ["user", "connection", "person", "ib_user", "linked_at", "expires", "read", "error"]

    @admin.action(description="Read their rights again")
    def read_again(self, request: HttpRequest, queryset: QuerySet[IBLink]) -> None:
        for link in queryset:
            linking.request_rights(link)
        messages.success(request, "Their rights are being read.")

    @column("Session ends", ordering="expires_at")
    def expires(self, link: IBLink) -> SafeString | str:
        return moment(link.expires_at)

    @column("Rights read", ordering="verified_at")
    def read(self, link: IBLink) -> SafeString | str:
        return moment(link.verified_at)


@admin.register(IBEntitlement)
class IBEntitlementAdmin(ReadOnly):
    """Show folders by id, because not every admin may see their names."""

    list_display = ["link", "folder_ib_id", "granted", "is_top", "verified_at", "expires_at"]
    list_select_related = ["link__user", "link__connection", "folder"]
    search_fields = ["link__user__username", "folder__ib_id"]
    ordering = ["-id"]
    fields = [
        "link",
        "folder_ib_id",
        "granted",
        "may_list",
        "may_view",
        "is_top",
        "verified_at",
        "expires_at",
    ]

    @column("Folder")
    def folder_ib_id(self, entitlement: IBEntitlement) -> str:
        return entitlement.folder.ib_id

    @column("Actions")
    def granted(self, entitlement: IBEntitlement) -> str:
        return ", ".join(entitlement.actions)


@admin.register(IBQuarantine)
class IBQuarantineAdmin(ReadOnly):
    list_display = ["table", "ib_id", "reason", "connection", "run", "created_at"]
    list_select_related = ["connection", "run__connection"]
    search_fields = ["ib_id", "reason"]
    ordering = ["-id"]
    fields = ["connection", "run", "table", "ib_id", "reason", "created_at"]
