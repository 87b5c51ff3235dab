"""Rebuild the search index now, beside the one in use."""

from typing import Any

from django.core.management.base import BaseCommand
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from search_app.index.rebuild import reindex


class Command(BaseCommand):
    help = (
        "Rebuild the search index beside the live one and swap them. A run that was cut short is"
        " continued."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        columns = (
            TextColumn("Indexing {task.fields[kind]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, transient=True, disable=not self.stdout.isatty()) as bar:
            task = bar.add_task("documents", total=None, kind="")
            written = reindex(
                lambda done, total, kind: bar.update(task, completed=done, total=total, kind=kind)
            )
        self.stdout.write(f"{written} documents indexed; the new index is in use.")
