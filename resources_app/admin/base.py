"""Share the base of all admin pages: permissions, lists that cost one page, and the actor of a
write.
"""

import datetime
import json
from collections.abc import Callable
from typing import Any, TypeVar

import structlog
from django.contrib.admin import ShowFacets
from django.core.paginator import Paginator
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import RadioFilter, TextFilter
from unfold.views import ChangeList

from resources_app.admin.forms import RefusableForm
from resources_app.errors import BacklogError
from resources_app.identity.roles import SESSION_CLIENT, Actor, is_admin

# No admin pages further than this, and a count that stops here does not grow with the table.
MAX_COUNTED = 10_000
# Size of Change.request_id. A caller may send an X-Request-ID of any length.
MAX_REQUEST_ID = 64


def actor_of(request: HttpRequest) -> Actor:
    request_id = str(structlog.contextvars.get_contextvars().get("request_id", ""))
    address = request.META.get("REMOTE_ADDR", "")
    return Actor(
        request.user,
        via="admin",
        request_id=request_id[:MAX_REQUEST_ID],
        client=SESSION_CLIENT,
        address=address,
    )


Column = TypeVar("Column", bound=Callable[..., Any])


def column(
    title: str,
    *,
    ordering: str | None = None,
    colours: dict[str, str] | None = None,
    boolean: bool = False,
) -> Callable[[Column], Column]:
    """Declare a method as a list column or read-only field.

    `colours` shows its values as labels.
    """

    def describe(method: Column) -> Column:
        method.__dict__.update(
            short_description=title, admin_order_field=ordering, label=colours, boolean=boolean
        )
        return method

    return describe


def nowrap(text: object) -> SafeString:
    return format_html('<span class="whitespace-nowrap">{}</span>', text)


def moment(at: datetime.datetime | None) -> SafeString | str:
    return nowrap(timezone.localtime(at).strftime("%Y-%m-%d %H:%M")) if at else "–"


def preformatted(value: object) -> SafeString | str:
    if value in (None, "", {}, []):
        return "–"
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, indent=2, ensure_ascii=False, default=str)
    )
    return format_html('<pre class="backlog-pre">{}</pre>', text)


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not subscriptable at run time
    template_name = "admin/backlog/pagination.html"

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by()[:MAX_COUNTED].count())

    @property
    def is_cut(self) -> bool:
        return self.count == MAX_COUNTED


class LeanChangeList(ChangeList):  # type: ignore[misc]  # unfold has no types
    """Defer the columns that no list shows: fifty long texts are megabytes."""

    def get_queryset(self, request: HttpRequest, exclude_parameters: Any = None) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request, exclude_parameters)
        return rows.defer(*self.model_admin.list_defer)

    def get_results(self, request: HttpRequest) -> None:
        """Show the total only for a filtered list."""
        super().get_results(request)
        if not self.query and not self.has_active_filters:
            self.full_result_count = self.result_count


class AdminOnly(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """Grant everything to users with the admin role. Django's own permissions are not checked."""

    list_per_page = 50
    list_max_show_all = 50
    list_fullwidth = True
    list_filter_submit = True
    list_disable_select_all = True
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    paginator = BoundedPaginator
    list_defer: tuple[str, ...] = ()
    has_history = True

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[LeanChangeList]:
        return LeanChangeList

    def has_module_permission(self, request: HttpRequest) -> bool:
        return is_admin(request.user)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_admin(request.user)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_admin(request.user)

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_admin(request.user)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return is_admin(request.user)


class ReadOnly(AdminOnly):
    has_history = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


class Refusable(AdminOnly):
    """Roll back a rejected write completely and show the form again with the error."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **kwargs)  # type: ignore[no-any-return]
        except BacklogError as error:
            request.refusal = error  # type: ignore[attr-defined]  # for get_form, below
            return super().changeform_view(request, *args, **kwargs)  # type: ignore[no-any-return]

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> type[RefusableForm]:
        form: type[RefusableForm] = super().get_form(request, *args, **kwargs)
        form.refusal = getattr(request, "refusal", None)
        return form


class ArchivedFilter(RadioFilter):  # type: ignore[misc]  # unfold has no types
    """Hide archived rows unless the filter asks for them."""

    title = "archived"
    parameter_name = "archived"
    all_option = None

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        return [("no", "Live"), ("yes", "Archived"), ("all", "Both")]

    def value(self) -> str:
        return super().value() or "no"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        return queryset.filter(archived_at__isnull=self.value() != "yes")


class LabelFilter(TextFilter):  # type: ignore[misc]  # unfold has no types
    title = "label"
    parameter_name = "label"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(label_rows__name=self.value()) if self.value() else queryset
