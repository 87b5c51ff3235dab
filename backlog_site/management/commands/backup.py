"""Run `manage.py backup FILE`: back up everything, consistently, while the site runs."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backlog_site.operations.backups import back_up, count_rows
from resources_app.management.command_line import progress_bar


class Command(BaseCommand):
    help = (
        "Writes tasks, epics, files, history, people and tokens (hashed) into one compressed file,"
        " as of one moment, while the site runs. Keep SECRET_KEY beside it: credentials of"
        " connections are encrypted with it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", type=Path, help="such as backlog-2026-01-31.jsonl.gz"
        )

    def handle(self, *_args: Any, file: Path, **_options: Any) -> None:
        file = Path(file)
        if not file.parent.is_dir():
            raise CommandError(f"There is no folder {file.parent}.")
        with progress_bar("Backing up", count_rows()) as progress:
            rows = back_up(file, progress)
        self.stdout.write(f"{rows} rows in {file}, {file.stat().st_size:,} bytes")
