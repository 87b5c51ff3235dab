"""Print the local path of the file behind a URI."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from resources_app.addresses import uris
from resources_app.addresses.targets import AREAS
from resources_app.addresses.uris import Uri
from resources_app.errors import InvalidUri
from resources_app.files.disk import local_path, mount_of


class Command(BaseCommand):
    help = (
        "Print the local path of mcp://backlog/resources|artifacts/… below a configured folder, or"
        " of file://…"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("uri")

    def handle(self, *args: Any, uri: str, **options: Any) -> None:
        try:
            parsed = uris.parse(uri)
        except InvalidUri as error:
            raise CommandError(error.message) from error
        path = local_path(parsed)
        if path is None:
            raise CommandError(_why_not(parsed))
        self.stdout.write(str(path))


def _why_not(uri: Uri) -> str:
    if uri.scheme == "file":
        return f"{uri} lies in no configured folder, or there is no such file."
    if (uri.scheme, uri.authority) != ("mcp", uris.SERVER) or not uri.segments:
        return f"{uri} has no local file."
    if uri.version:
        return f"{uri} names a version; only the present one can be a local file."
    if mount_of(uri.path):
        return f"There is no file {uri.path} in the folder it is mirrored from."
    if uri.segments[0] in AREAS:
        return (
            f"{uri} is not mirrored from a folder: if it exists it is stored in the backlog and has"
            " no local file."
        )
    return (
        f"{uri} is kept in the database and has no local file; export_backlog DIR writes tasks and"
        " epics as files."
    )
