"""Export the whole backlog as markdown files that import_backlog and backlog-mcp can read."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from resources_app.interchange.exporting import count_things, export_tree
from resources_app.management.command_line import (
    add_user_argument,
    admin_actor,
    print_report,
    progress_bar,
)


class Command(BaseCommand):
    help = (
        "Exports tasks, epics, their comments and the stored resources. The same backlog gives the"
        " same bytes; files that are right already are not touched. Mirrored files and the history"
        " are not exported."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path)
        parser.add_argument(
            "--prune", action="store_true", help="remove the files of things that no longer exist"
        )
        add_user_argument(parser)

    def handle(
        self, *_args: Any, folder: Path, prune: bool, user: str | None, **_options: Any
    ) -> None:
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise CommandError(f"{folder} is not a folder.")
        actor = admin_actor(user)
        try:
            with progress_bar("Exporting", count_things(actor)) as progress:
                report = export_tree(actor, folder, prune=prune, progress=progress)
        except OSError as error:
            raise CommandError(f"{folder} cannot be written: {error}") from error
        print_report(self, report)
