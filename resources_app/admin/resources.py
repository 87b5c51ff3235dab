"""Manage files and folders. Mirrored files are read-only; stored files are editable."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import AutocompleteSelectFilter, FieldTextFilter

from resources_app.admin.base import ArchivedFilter, ReadOnly, column, moment, nowrap, preformatted
from resources_app.admin.forms import ResourceForm
from resources_app.admin.write_path import WritePathAdmin
from resources_app.identity.roles import Actor
from resources_app.models import Folder, Resource
from resources_app.writing import stored_files


@admin.register(Resource)
class ResourceAdmin(WritePathAdmin):
    form = ResourceForm
    list_display = ["path", "title", "mime_type", "file_size", "origin", "updated"]
    list_defer = ("content", "blob", "description", "frontmatter", "field_versions")
    list_filter = [
        ("folder", AutocompleteSelectFilter),
        ("root", FieldTextFilter),
        ("mime_type", FieldTextFilter),
        ArchivedFilter,
    ]
    ordering = ["-updated_at", "-id"]
    search_fields = ["path", "title"]
    search_help_text = "Path or title"
    readonly_fields = [
        "mime_type",
        "file_size",
        "sha256",
        "origin",
        "version",
        "updated",
        "facts",
        "text",
    ]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        described = ["path", "title", "description", "tags", "groups"]
        if obj is None:
            return [*described, "content"]
        editable = obj.is_text and self.has_change_permission(request, obj)
        facts = [name for name in self.readonly_fields if name != "text"]
        return [*described, "content" if editable else "text", *facts]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["path", *self.readonly_fields] if obj else self.readonly_fields

    def create(self, actor: Actor, form: Any) -> Resource:
        values = form.values()
        return stored_files.create_resource(
            actor, values.pop("path"), values.pop("content"), **values
        )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("blob")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not getattr(obj, "root", "")

    @column("Size", ordering="size")
    def file_size(self, resource: Resource) -> SafeString:
        return nowrap(filesizeformat(resource.size))

    @column("From", ordering="root")
    def origin(self, resource: Resource) -> str:
        return f"mirror of {resource.root}" if resource.root else "stored here"

    @column("Updated", ordering="updated_at")
    def updated(self, resource: Resource) -> SafeString | str:
        return moment(resource.updated_at)

    @column("Frontmatter")
    def facts(self, resource: Resource) -> SafeString | str:
        return preformatted(resource.frontmatter)

    @column("Content")
    def text(self, resource: Resource) -> SafeString | str:
        return preformatted(resource.content if resource.is_text else "(binary)")


@admin.register(Folder)
class FolderAdmin(ReadOnly):
    list_display = ["path", "parent"]
    list_select_related = ["parent"]
    list_filter = [("parent", AutocompleteSelectFilter)]
    ordering = ["path"]
    search_fields = ["path"]
    fields = ["path", "parent"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return Folder.objects.visible_to(request.user)
