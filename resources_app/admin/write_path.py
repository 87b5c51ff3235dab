"""Manage objects with a history.

Saving, archiving, restoring and deleting use only the write path.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin import action
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.db.models import Model, QuerySet
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from resources_app.admin.base import Refusable, actor_of
from resources_app.admin.forms import WritePathForm, etag_of
from resources_app.errors import BacklogError
from resources_app.history.documents import uri_of
from resources_app.history.revisions import Document
from resources_app.history.timeline import timeline
from resources_app.identity.roles import Actor
from resources_app.models.base import Versioned
from resources_app.writing import write_path


@dataclass(frozen=True)
class ConfirmedAction:
    """Describe an action on whole objects that needs confirmation."""

    name: str
    title: str
    question: str
    done: str
    icon: str
    run: Callable[[Actor, str], object]
    is_final: bool = False


ARCHIVE = ConfirmedAction(
    "archive",
    "Archive",
    "It becomes read-only and leaves the lists. It can be brought back at any time.",
    "Archived",
    "archive",
    write_path.archive,
)
UNARCHIVE = ConfirmedAction(
    "unarchive",
    "Unarchive",
    "It comes back to the lists.",
    "Unarchived",
    "unarchive",
    write_path.unarchive,
)
DELETE = ConfirmedAction(
    "delete_permanently",
    "Delete permanently",
    "The texts and the whole history are gone for good; the audit trail only keeps that it"
    " happened.",
    "Deleted",
    "delete_forever",
    write_path.delete_permanently,
    is_final=True,
)


class WritePathAdmin(Refusable):
    form = WritePathForm
    warn_unsaved_form = True
    actions = ["archive_selected", "unarchive_selected", "delete_selected_permanently"]
    deeds = (ARCHIVE, UNARCHIVE, DELETE)

    def create(self, actor: Actor, form: Any) -> Versioned:
        raise NotImplementedError

    def operation(self, changed: Document) -> dict[str, Any]:
        return {"type": "merge", "value": changed}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: Any = super().get_queryset(request)
        visible: QuerySet[Any] = rows.visible_to(request.user)
        return visible

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_change_permission(request, obj) and not getattr(obj, "archived_at", None)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Forbid Django's delete, which bypasses the write path."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        actor = actor_of(request)
        if not change:
            obj.pk = self.create(actor, form).pk
        elif changed := form.changes():
            write_path.write(actor, uri_of(obj), self.operation(changed), form.cleaned_data["etag"])
        obj.refresh_from_db()

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:
        """Skip Django's log, as in log_change: the change row of the write path says more."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:
        pass

    def get_urls(self) -> list[URLPattern]:
        opts = self.opts
        prefix = f"{opts.app_label}_{opts.model_name}"
        own = [
            path(
                f"<path:object_id>/{deed.name}/",
                self.admin_site.admin_view(self._confirmed(deed)),
                name=f"{prefix}_{deed.name}",
            )
            for deed in self.deeds
        ]
        restore = path(
            "<path:object_id>/restore/<int:version>/",
            self.admin_site.admin_view(self.restore_view),
            name=f"{prefix}_restore",
        )
        return [*own, restore, *super().get_urls()]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        thing = self._thing(request, object_id)
        before = request.GET.get("before", "")
        if before and not (before.isascii() and before.isdigit() and len(before) < 10):
            raise Http404("before must be a version")
        context = {
            "title": f"History of {thing.ref}",
            "original": thing,
            "page": timeline(thing, before=int(before) if before else None),
            "is_newest": not before,
            "etag": etag_of(thing),
            "may_restore": self.has_change_permission(request, thing),
        }
        return self._page(request, "admin/backlog/history.html", context)

    def restore_view(self, request: HttpRequest, object_id: str, version: int) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        thing = self._thing(request, object_id)
        operation = {"type": "restore", "version": version}
        try:
            write_path.write(
                actor_of(request), uri_of(thing), operation, request.POST.get("etag", "")
            )
        except BacklogError as error:
            messages.error(request, f"Nothing was restored. {error.message}")
        else:
            messages.success(request, f"{thing.ref} is as it was in version {version}.")
        return HttpResponseRedirect(self._url("history", thing))

    @action(description="Archive")
    def archive_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._do(request, ARCHIVE, queryset)

    @action(description="Unarchive")
    def unarchive_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        self._do(request, UNARCHIVE, queryset)

    @action(description="Delete permanently …")
    def delete_selected_permanently(
        self, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        if request.POST.get("confirmed"):
            self._do(request, DELETE, queryset)
            return None
        repeated = {"action": "delete_selected_permanently", "confirmed": "yes"}
        back = reverse(self._url_name("changelist"))
        return self._ask(request, DELETE, list(queryset), repeated, back)

    def _confirmed(self, deed: ConfirmedAction) -> Callable[..., HttpResponse]:
        def view(request: HttpRequest, object_id: str) -> HttpResponse:
            thing = self._thing(request, object_id)
            if request.method != "POST":
                return self._ask(request, deed, [thing], {}, self._url("change", thing))
            gone = self._do(request, deed, [thing]) and deed.is_final
            return HttpResponseRedirect(
                reverse(self._url_name("changelist")) if gone else self._url("change", thing)
            )

        return view

    def _do(self, request: HttpRequest, deed: ConfirmedAction, things: Any) -> bool:
        """Run each in a separate transaction. Errors are reported, and the rest is done."""
        actor, done, refused = actor_of(request), 0, []
        for thing in things:
            try:
                deed.run(actor, uri_of(thing))
                done += 1
            except BacklogError as error:
                refused.append(f"{thing.ref}: {error.message}")
        for message in refused:
            messages.error(request, message)
        if done:
            name = self.opts.verbose_name if done == 1 else self.opts.verbose_name_plural
            messages.success(request, f"{deed.done} {done} {name}.")
        return not refused

    def _ask(
        self,
        request: HttpRequest,
        deed: ConfirmedAction,
        things: list[Any],
        repeated: dict[str, str],
        back: str,
    ) -> HttpResponse:
        context = {
            "title": deed.title,
            "deed": deed,
            "things": things,
            "repeated": repeated,
            "checkbox": ACTION_CHECKBOX_NAME,
            "back": back,
        }
        return self._page(request, "admin/backlog/confirm.html", context)

    def _page(self, request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
        request.current_app = self.admin_site.name
        return TemplateResponse(
            request,
            template,
            {**self.admin_site.each_context(request), "opts": self.opts, **context},
        )

    def _thing(self, request: HttpRequest, object_id: str) -> Any:
        thing = self.get_object(request, unquote(object_id))
        if thing is None:
            raise Http404(f"There is no {self.opts.verbose_name} {object_id}.")
        return thing

    def _url_name(self, page: str) -> str:
        return f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_{page}"

    def _url(self, page: str, thing: Any) -> str:
        return reverse(self._url_name(page), args=[thing.pk])
