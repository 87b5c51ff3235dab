"""Run `manage.py doctor`: check the whole site and say what to do."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from backlog_site.operations.doctor import examine
from backlog_site.operations.findings import PROBLEM, Finding


class Command(BaseCommand):
    help = (
        "Checks database, broker, worker, search index, a real MCP round trip, folders, disk and"
        " deploy settings. Exits with 1 when something does not work."
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--url",
            default=settings.PUBLIC_URL,
            help=f"where the site answers ({settings.PUBLIC_URL})",
        )
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")

    def handle(self, *_args: Any, url: str, **options: Any) -> None:
        findings = []
        for finding in examine(url.rstrip("/")):
            findings.append(finding)
            if not options["json"]:
                self._show(finding)
        if options["json"]:
            self.stdout.write(
                json.dumps(
                    [finding.as_json() for finding in findings], indent=2, ensure_ascii=False
                )
            )
        problems = sum(finding.level == PROBLEM for finding in findings)
        if problems:
            raise CommandError(f"{problems} of {len(findings)} checks found a problem.")

    def _show(self, finding: Finding) -> None:
        style = {
            "ok": self.style.SUCCESS,
            "warning": self.style.WARNING,
            "problem": self.style.ERROR,
        }[finding.level]
        self.stdout.write(style(f"{finding.level:8}") + f"{finding.subject}: {finding.message}")
        if finding.advice:
            self.stdout.write(f"        → {finding.advice}")
