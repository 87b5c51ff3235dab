"""Mirror the files of the configured roots now instead of at the next scheduled scan."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resources_app.files.disk import mounts
from resources_app.interchange.scan import ScanReport, scan


class Command(BaseCommand):
    help = (
        "Mirror the folders of BACKLOG_RESOURCE_ROOTS as resources: added, changed (by hash),"
        " removed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="print the report as JSON")
        parser.add_argument(
            "--forget",
            action="append",
            default=[],
            metavar="ROOT",
            help="archive the files of a root that is gone",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        report = self._scan(options["forget"], show=self.stdout.isatty() and not options["json"])
        if options["json"]:
            self.stdout.write(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
        else:
            self._summarise(report)

    def _scan(self, forget: list[str], *, show: bool) -> ScanReport:
        if not show:
            return scan(forget=forget)
        columns = (TextColumn("Scanning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns) as bar:
            task = bar.add_task("files", total=None)
            return scan(
                lambda done, total, _: bar.update(task, completed=done, total=total), forget=forget
            )

    def _summarise(self, report: ScanReport) -> None:
        if not mounts():
            self.stdout.write("No folders are configured: set BACKLOG_RESOURCE_ROOTS=name=/path,…")
        for path, reason in report.skipped:
            self.stdout.write(f"skipped {path}: {reason}")
        self.stdout.write(
            f"{report.added} added, {report.changed} changed, {report.removed} removed, "
            f"{report.unchanged} unchanged, {len(report.skipped)} skipped"
        )
