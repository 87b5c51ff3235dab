"""Manage tasks, epics and comments."""

import re
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesCheckboxFilter

from resources_app.admin.base import ArchivedFilter, LabelFilter, column, moment, nowrap
from resources_app.admin.forms import CommentForm, EpicForm, TaskForm, form_name
from resources_app.admin.write_path import WritePathAdmin
from resources_app.fields.declarations import LONG_COLUMNS, Type, writable_fields
from resources_app.history.documents import uri_of
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.models import Comment, Epic, Task
from resources_app.vocabulary import Kind, Priority, Status
from resources_app.writing import write_path

STATUS_COLOURS = {
    "open": "info",
    "in progress": "warning",
    "blocked": "danger",
    "done": "success",
    "cancelled": "",
}
PRIORITY_COLOURS = {"urgent": "danger", "high": "warning", "medium": "info", "low": "", "none": ""}
EXCERPT = 100


def _is_autocomplete(request: HttpRequest) -> bool:
    return bool(request.resolver_match and request.resolver_match.url_name == "autocomplete")


class ItemAdmin(WritePathAdmin):
    model: Any
    list_display = [
        "ref",
        "title",
        "coloured_status",
        "coloured_priority",
        "assignee",
        "due",
        "updated",
    ]
    list_display_links = ["ref", "title"]
    # Unfold repeats 7 KB of classes in each row of this many columns.
    list_per_page = 25
    list_max_show_all = 25
    list_select_related = ["assignee"]
    list_defer: tuple[str, ...] = (*LONG_COLUMNS, "extra", "field_versions")
    ordering = ["-updated_at", "-number"]
    search_fields = ["title"]
    search_help_text = "Id or words"
    autocomplete_fields = ["assignee"]
    readonly_fields = ["created", "updated", "archived", "version"]

    def create(self, actor: Actor, form: Any) -> Task | Epic:
        return write_path.create_item(actor, self.model.KIND, form.values())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by number in any form (TASK-0042, task-42, 42) or by words.

        Autocomplete omits archived items.
        """
        if _is_autocomplete(request):
            queryset = queryset.filter(archived_at__isnull=True)
        number = re.fullmatch(
            rf"(?:{self.model.PREFIX}-)?0*(\d{{1,15}})", search_term.strip(), re.IGNORECASE
        )
        if number:
            return queryset.filter(pk=int(number[1])), False
        words = search_term.strip()
        return (queryset.mentioning(words) if words else queryset), False  # type: ignore[attr-defined]  # tasks and epics

    @column("Id", ordering="number")
    def ref(self, item: Task | Epic) -> SafeString:
        return nowrap(item.ref)

    @column("Status", ordering="status", colours=STATUS_COLOURS)
    def coloured_status(self, item: Task | Epic) -> str:
        return Status(item.status).label.replace("_", " ")

    @column("Priority", ordering="priority", colours=PRIORITY_COLOURS)
    def coloured_priority(self, item: Task | Epic) -> str:
        return Priority(item.priority).label

    @column("Due", ordering="due_date")
    def due(self, item: Task | Epic) -> SafeString | None:
        return nowrap(item.due_date.isoformat()) if item.due_date else None

    @column("Created", ordering="created_at")
    def created(self, item: Task | Epic) -> SafeString | str:
        return moment(item.created_at)

    @column("Updated", ordering="updated_at")
    def updated(self, item: Task | Epic) -> SafeString | str:
        return moment(item.updated_at)

    @column("Archived")
    def archived(self, item: Task | Epic) -> SafeString | str:
        return moment(item.archived_at)


# The tab of a field, by its type. Every other type is part of the state.
_TABS: dict[Type, str | None] = {
    "text": None,
    "markdown": None,
    "tasks": "Work",
    "texts": "Work",
    "references": "Work",
    "groups": "Access",
}


def _fieldsets(kind: str) -> list[tuple[str | None, dict[str, Any]]]:
    tabs: dict[str | None, list[str]] = {None: [], "State": [], "Work": [], "Access": []}
    for field in writable_fields(kind):
        tabs[_TABS.get(field.type, "State")].append(form_name(field))
    return [
        (None, {"fields": tabs.pop(None)}),
        *((name, {"classes": ["tab"], "fields": fields}) for name, fields in tabs.items()),
        (
            "Record",
            {
                "classes": ["tab"],
                "fields": ["version", "created", "updated", "archived", "related"],
            },
        ),
    ]


def _list_link(text: str, model_name: str, lookup: str, pk: int | None) -> SafeString | str:
    if pk is None:
        return "–"
    url = reverse(f"admin:resources_app_{model_name}_changelist")
    return format_html('<a class="text-link" href="{}?{}={}">{}</a>', url, lookup, pk, text)


@admin.register(Task)
class TaskAdmin(ItemAdmin):
    form = TaskForm
    list_display = [*ItemAdmin.list_display[:4], "in_epic", *ItemAdmin.list_display[4:]]
    list_select_related = ["assignee", "epic"]
    list_defer = (*ItemAdmin.list_defer, *(f"epic__{name}" for name in ItemAdmin.list_defer))
    list_filter = [
        ("status", ChoicesCheckboxFilter),
        ("priority", ChoicesCheckboxFilter),
        ("epic", AutocompleteSelectFilter),
        ("assignee", AutocompleteSelectFilter),
        LabelFilter,
        ArchivedFilter,
    ]
    autocomplete_fields = ["assignee", "epic"]
    readonly_fields = [*ItemAdmin.readonly_fields, "related"]
    fieldsets = _fieldsets(Kind.TASK)

    @column("Epic", ordering="epic__number")
    def in_epic(self, task: Task) -> SafeString | None:
        return nowrap(task.epic.ref) if task.epic else None

    @column("Comments")
    def related(self, task: Task) -> SafeString | str:
        return _list_link("Comments on this task", "comment", "task__number__exact", task.pk)


@admin.register(Epic)
class EpicAdmin(ItemAdmin):
    form = EpicForm
    list_filter = [
        ("status", ChoicesCheckboxFilter),
        ("priority", ChoicesCheckboxFilter),
        ("assignee", AutocompleteSelectFilter),
        LabelFilter,
        ArchivedFilter,
    ]
    readonly_fields = [*ItemAdmin.readonly_fields, "related"]
    fieldsets = _fieldsets(Kind.EPIC)

    @column("Tasks")
    def related(self, epic: Epic) -> SafeString | str:
        return _list_link("Tasks of this epic", "task", "epic__number__exact", epic.pk)


@admin.register(Comment)
class CommentAdmin(WritePathAdmin):
    form = CommentForm
    list_display = ["number", "on", "excerpt", "author", "agent", "created"]
    list_display_links = ["number", "excerpt"]
    list_select_related = ["task", "epic", "author"]
    list_defer = tuple(
        f"{item}__{name}" for item in ("task", "epic") for name in ItemAdmin.list_defer
    )
    list_filter = [
        ("task", AutocompleteSelectFilter),
        ("epic", AutocompleteSelectFilter),
        ("author", AutocompleteSelectFilter),
        ArchivedFilter,
    ]
    ordering = ["-created_at", "-id"]
    search_fields = ["body"]
    search_help_text = "Words of the comment"
    autocomplete_fields = ["task", "epic"]
    fields = ["task", "epic", "body", "author", "agent", "created", "version"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        kept = ["author", "agent", "created", "version"]
        return ["task", "epic", *kept] if obj else kept

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return self.fields if obj else ["task", "epic", "body"]

    def create(self, actor: Actor, form: Any) -> Comment:
        item = form.cleaned_data["task"] or form.cleaned_data["epic"]
        return write_path.add_comment(actor, uri_of(item), form.values()["body"])

    def operation(self, changed: Document) -> dict[str, Any]:
        return {"type": "set", "value": changed["body"]}

    @column("No.", ordering="id")
    def number(self, comment: Comment) -> str:
        return str(comment.pk)

    @column("On")
    def on(self, comment: Comment) -> SafeString:
        return nowrap(comment.item.ref)

    @column("Comment")
    def excerpt(self, comment: Comment) -> str:
        return comment.body if len(comment.body) <= EXCERPT else comment.body[:EXCERPT] + "…"

    @column("Created", ordering="created_at")
    def created(self, comment: Comment) -> SafeString | str:
        return moment(comment.created_at)
