"""Convert file:// links inside configured folders to mcp:// URIs, and list the others."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from resources_app.interchange.convert_links import Conversion, convert_links


class Command(BaseCommand):
    help = (
        "Find machine-specific file:// links and turn them into mcp:// where possible. Dry unless"
        " --apply is given."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--apply", action="store_true", help="write the changes")

    def handle(self, *args: Any, apply: bool, **options: Any) -> None:
        conversion = convert_links(apply=apply)
        for one in conversion.convertible:
            self.stdout.write(f"{one.where} {one.field}: {one.link} → {one.target}")
        for one in conversion.warnings:
            self.stdout.write(f"warning: {one.where} {one.field}: {one.link} stays: {one.reason}")
        for where, reason in conversion.failed:
            self.stderr.write(f"failed: {where}: {reason}")
        self.stdout.write(_summary(conversion, apply=apply))


def _summary(conversion: Conversion, *, apply: bool) -> str:
    links, warnings = len(conversion.convertible), len(conversion.warnings)
    if apply:
        return (
            f"{links} links converted in {conversion.things_written} places, {warnings} left as"
            " they are."
        )
    return (
        f"{links} links can be converted, {warnings} cannot. Nothing was written; --apply writes."
    )
