"""Show the audit trail and its revisions, read-only."""

from typing import Any

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import (
    AutocompleteSelectFilter,
    ChoicesCheckboxFilter,
    FieldTextFilter,
)

from resources_app.admin.base import ReadOnly, column, moment, nowrap, preformatted
from resources_app.fields.declarations import parse_ref
from resources_app.models import Change, Revision
from resources_app.vocabulary import Kind

ACTION_COLOURS = {
    "create": "success",
    "update": "info",
    "archive": "warning",
    "unarchive": "",
    "delete": "danger",
}
_PREFIXES = {Kind.TASK: "TASK", Kind.EPIC: "EPIC"}


def history_link(kind: str, object_id: int, text: str) -> SafeString:
    url = reverse(f"admin:resources_app_{kind}_history", args=[object_id])
    return format_html('<a class="text-link whitespace-nowrap" href="{}">{}</a>', url, text)


def _numbered(ref: str) -> tuple[str, int] | None:
    for kind, prefix in _PREFIXES.items():
        number = parse_ref(ref.strip().upper(), prefix)
        if number is not None:
            return kind, number
    return None


@admin.register(Change)
class ChangeAdmin(ReadOnly):
    """Show all changes, including those to deleted objects, which an audit trail must keep.

    Only admins have access.
    """

    list_display = [
        "at",
        "coloured_action",
        "thing",
        "version",
        "changed",
        "author",
        "door",
        "agent",
        "client",
    ]
    list_display_links = ["at"]
    list_select_related = ["author"]
    list_defer = ("operation",)
    list_filter = [
        ("kind", ChoicesCheckboxFilter),
        ("via", ChoicesCheckboxFilter),
        ("author", AutocompleteSelectFilter),
        ("agent", FieldTextFilter),
        ("client", FieldTextFilter),
        ("address", FieldTextFilter),
    ]
    ordering = ["-id"]
    search_fields = ["ref"]
    search_help_text = "Id or path"
    fields = [
        "at",
        "action",
        "thing",
        "uri",
        "version",
        "changed",
        "author",
        "door",
        "agent",
        "client",
        "scope",
        "address",
        "batch",
        "request_id",
        "asked",
    ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if found := _numbered(search_term):
            return queryset.filter(kind=found[0], object_id=found[1]), False
        results: tuple[QuerySet[Any], bool] = super().get_search_results(
            request, queryset, search_term
        )
        return results

    @column("When", ordering="id")
    def at(self, change: Change) -> SafeString | str:
        return moment(change.created_at)

    @column("Action", colours=ACTION_COLOURS)
    def coloured_action(self, change: Change) -> str:
        return change.action

    @column("Thing")
    def thing(self, change: Change) -> SafeString:
        name = f"comment {change.ref}" if change.kind == Kind.COMMENT else change.ref
        return (
            nowrap(name)
            if change.action == "delete"
            else history_link(change.kind, change.object_id, name)
        )

    @column("Fields")
    def changed(self, change: Change) -> str:
        return ", ".join(change.fields) or "–"

    @column("Via", ordering="via")
    def door(self, change: Change) -> str:
        return change.via

    @column("Operation")
    def asked(self, change: Change) -> SafeString | str:
        return preformatted(change.operation)


@admin.register(Revision)
class RevisionAdmin(ReadOnly):
    list_display = ["at", "thing", "version", "changed", "is_whole"]
    list_select_related = ["change"]
    list_defer = ("snapshot", "change__operation")
    list_filter = [("kind", ChoicesCheckboxFilter)]
    ordering = ["-change_id"]
    fields = ["at", "thing", "version", "steps", "whole"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        has_snapshot = ExpressionWrapper(Q(snapshot__isnull=False), BooleanField())
        return Revision.objects.select_related("change").annotate(has_snapshot=has_snapshot)

    @column("When", ordering="change_id")
    def at(self, revision: Revision) -> SafeString | str:
        return moment(revision.change.created_at)

    @column("Thing")
    def thing(self, revision: Revision) -> SafeString:
        return history_link(revision.kind, revision.object_id, revision.change.ref)

    @column("Fields")
    def changed(self, revision: Revision) -> str:
        return ", ".join(revision.change.fields) or "–"

    @column("Snapshot", boolean=True)
    def is_whole(self, revision: Any) -> bool:
        return bool(revision.has_snapshot)

    @column("Delta")
    def steps(self, revision: Revision) -> SafeString | str:
        return preformatted(revision.delta)

    @column("Snapshot")
    def whole(self, revision: Revision) -> SafeString | str:
        return preformatted(revision.snapshot)
