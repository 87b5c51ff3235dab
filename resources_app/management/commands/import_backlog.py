"""Import markdown files written by backlog-mcp or export_backlog."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from resources_app.interchange.importing import count_files, import_tree
from resources_app.management.command_line import (
    add_user_argument,
    admin_actor,
    print_report,
    progress_bar,
)


class Command(BaseCommand):
    help = (
        "Imports a folder with tasks/, epics/, archive/, comments/, resources/ and artifacts/ and"
        " keeps ids. Run again it changes nothing; a file that changed updates its task. What is"
        " refused or left out is named, the rest goes in."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", metavar="DIR", type=Path)
        parser.add_argument(
            "--folders",
            choices=("epics", "labels"),
            help=(
                "what the folders of backlog-mcp (FLDR-0001) become: an epic each, or a label of"
                " each task in them"
            ),
        )
        parser.add_argument(
            "--documents",
            action="store_true",
            help="import every other file as a resource, below resources/",
        )
        add_user_argument(parser)

    def handle(self, *_args: Any, folder: Path, user: str | None, **options: Any) -> None:
        folder = Path(folder)
        if not folder.is_dir():
            raise CommandError(f"There is no folder {folder}.")
        actor = admin_actor(user)
        with progress_bar("Importing", count_files(folder)) as progress:
            report = import_tree(
                actor, folder, progress, folders=options["folders"], documents=options["documents"]
            )
        print_report(self, report)
