"""Run `manage.py restore FILE`: restore a backup from SQLite or PostgreSQL into this database."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from backlog_site.operations.backups import BackupRefused, restore
from resources_app.management.command_line import progress_bar
from search_app.index.rebuild import reindex


class Command(BaseCommand):
    help = (
        "Restores a backup into an empty, migrated database: all of it or nothing. Then builds the"
        " search index."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.add_argument(
            "--replace",
            action="store_true",
            help="delete what the database holds; stop the site first",
        )

    def handle(self, *_args: Any, file: Path, replace: bool, **_options: Any) -> None:
        try:
            with progress_bar("Restoring", None) as progress:
                rows = restore(Path(file), progress, replace=replace)
        except BackupRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{rows} rows restored; {reindex()} documents indexed")
