"""Show background jobs: pending, running, done and failed, with errors."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesCheckboxFilter, FieldTextFilter

from resources_app.admin.base import ReadOnly, column, moment, preformatted
from resources_app.errors import BacklogError
from resources_app.jobs import queue
from resources_app.models import Job

STATE_COLOURS = {"pending": "info", "running": "warning", "done": "success", "failed": "danger"}
EXCERPT = 120


@admin.register(Job)
class JobAdmin(ReadOnly):
    list_display = ["number", "kind", "coloured_state", "attempts", "due", "finished", "error"]
    list_display_links = ["number", "kind"]
    list_defer = ("payload", "progress")
    list_filter = [("state", ChoicesCheckboxFilter), ("kind", FieldTextFilter)]
    ordering = ["-created_at", "-id"]
    search_fields = ["key"]
    actions = ["retry"]
    fields = [
        "kind",
        "key",
        "coloured_state",
        "attempts",
        "requested_by",
        "created",
        "due",
        "leased",
        "finished",
        "wanted",
        "reached",
        "whole_error",
    ]

    @admin.action(description="Retry")
    def retry(self, request: HttpRequest, queryset: QuerySet[Job]) -> None:
        for failed in queryset:
            try:
                waiting = queue.retry(failed.pk)
            except BacklogError as error:
                messages.error(request, error.message)
            else:
                messages.success(request, f"Job {failed.pk} is tried again as job {waiting.pk}.")

    @column("No.", ordering="id")
    def number(self, job: Job) -> str:
        return str(job.pk)

    @column("State", ordering="state", colours=STATE_COLOURS)
    def coloured_state(self, job: Job) -> str:
        return job.state

    @column("Created", ordering="created_at")
    def created(self, job: Job) -> SafeString | str:
        return moment(job.created_at)

    @column("Due", ordering="run_at")
    def due(self, job: Job) -> SafeString | str:
        return moment(job.run_at)

    @column("Leased until")
    def leased(self, job: Job) -> SafeString | str:
        return moment(job.lease_until)

    @column("Finished", ordering="finished_at")
    def finished(self, job: Job) -> SafeString | str:
        return moment(job.finished_at)

    @column("Last error")
    def error(self, job: Job) -> str:
        last_line = job.last_error.strip().rpartition("\n")[2]
        return last_line[:EXCERPT] or "–"

    @column("Payload")
    def wanted(self, job: Job) -> SafeString | str:
        return preformatted(job.payload)

    @column("Progress")
    def reached(self, job: Job) -> SafeString | str:
        return preformatted(job.progress)

    @column("Last error")
    def whole_error(self, job: Job) -> SafeString | str:
        return preformatted(job.last_error)
