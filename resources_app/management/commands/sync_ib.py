"""Sync with IntelligenceBank now instead of at the next scheduled run."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resources_app.intelligencebank.sync import runs, scheduling, working
from resources_app.intelligencebank.sync.advice import ADVICE
from resources_app.models import IBConnection, IBSyncRun

KINDS = ("full", "incremental", "reconcile")


class Command(BaseCommand):
    help = (
        "Mirrors the folders and resources of IntelligenceBank; continues a run that was cut short."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "client_id", nargs="?", metavar="CLIENTID", help="one connection; all if left out"
        )
        kinds = parser.add_mutually_exclusive_group()
        kinds.add_argument(
            "--full", action="store_const", dest="kind", const="full", help="read everything"
        )
        kinds.add_argument(
            "--reconcile",
            action="store_const",
            dest="kind",
            const="reconcile",
            help="look for deletions",
        )
        parser.add_argument(
            "--accept-missing",
            type=int,
            metavar="N",
            help="you have looked: this many missing rows may be hidden",
        )

    def handle(self, *_args: Any, client_id: str | None, **options: Any) -> None:
        connections = list(_connections(client_id))
        if not connections:
            raise CommandError(
                "There is no such connection. Add one in the admin, under IntelligenceBank."
            )
        outcomes = [self._sync(connection, options) for connection in connections]
        if any(run.status != runs.Status.COMPLETE for run in outcomes):
            raise CommandError(
                "Not everything was mirrored; see above. Running the command again goes on from"
                " there."
            )

    def _sync(self, connection: IBConnection, options: dict[str, Any]) -> IBSyncRun:
        if options["accept_missing"] is not None:
            runs.accept_missing(connection, options["accept_missing"])
        run = runs.start(connection, options["kind"] or "incremental")
        try:
            self._work(run)
        except (runs.Busy, runs.LostLease) as busy:
            raise CommandError(f"{busy} Try again when it is done.") from None
        counts = ", ".join(f"{count} {name}" for name, count in sorted(run.counters.items()))
        self.stdout.write(
            f"{connection.client_id}: {run.kind} {run.status} ({counts or 'nothing read'})"
            f" {run.error}"
        )
        if run.status == runs.Status.PAUSED:
            scheduling.enqueue_turn(run, run.resume_at)
        if advice := ADVICE.get(run.status):
            self.stdout.write(f"        → {advice}")
        return run

    def _work(self, run: IBSyncRun) -> None:
        console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as bar:
            task = bar.add_task(f"{run.connection.client_id} {run.kind}", total=None)

            def show(done: int, total: int, stage: str) -> None:
                title = f"{run.connection.client_id} {run.kind}: {stage}"
                bar.update(task, completed=done, total=total or None, description=title)

            working.work(run, working.ENDLESS, show)


def _connections(client_id: str | None) -> Any:
    enabled = IBConnection.objects.filter(is_enabled=True).order_by("client_id")
    return enabled.filter(client_id=client_id) if client_id else enabled
