"""Write the parts of README and docs/ that are made from the code; `--check` only says whether they
are up to date.
"""

import asyncio
import csv
import io
import json
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from mcp_server import mcp_server

from backlog_site.accounts.clients import checks, connections
from resources_app.editing.operations import ARGUMENTS
from resources_app.fields.declarations import FIELDS
from resources_app.reading.patterns import Entry
from resources_app.reading.registry import REGISTRY

HEADINGS = [
    "uri",
    "name",
    "description",
    "is_template",
    "template_variables",
    "requires_admin",
    "category",
    "mime_type",
]
LOCAL_URL = "http://127.0.0.1:8000/mcp"
# Rows of each category shown in the README; docs/addresses.md has them all.
SHOWN = 3


def registry_csv() -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HEADINGS)
    for entry in REGISTRY:
        writer.writerow(_row(entry))
    return out.getvalue()


def _row(entry: Entry) -> list[str]:
    yes_no = ("no", "yes")
    return [
        entry.pattern,
        entry.name,
        entry.description,
        yes_no[entry.is_template],
        " ".join(entry.variables),
        yes_no[entry.requires_admin],
        entry.category,
        entry.mime_type,
    ]


def addresses_page() -> str:
    lines = [
        "# Addresses",
        "",
        "Made by `make docs` from the registry, the fields and the operations.",
        "",
    ]
    for category in dict.fromkeys(entry.category for entry in REGISTRY):
        lines += [
            f"## {category.capitalize()}",
            "",
            "| address | what | type | parameters |",
            "|---|---|---|---|",
        ]
        lines += [_table_row(entry) for entry in REGISTRY if entry.category == category]
        lines.append("")
    return "\n".join([*lines, *_fields(), *_operations()])


def _table_row(entry: Entry) -> str:
    notes = " (admins)" if entry.requires_admin else ""
    versioned = ["version"] if entry.versioned else []
    parameters = ", ".join([*entry.parameters, *versioned])
    return f"| `{entry.pattern}` | {entry.description}{notes} | {entry.mime_type} | {parameters} |"


def _fields() -> list[str]:
    lines = [
        "## Fields of a task",
        "",
        "| field | type | operations | meaning |",
        "|---|---|---|---|",
    ]
    for field in FIELDS["task"].values():
        allowed = ", ".join(field.operations) or "read only"
        lines.append(f"| `{field.name}` | {field.mime_type} | {allowed} | {field.description} |")
    return [*lines, ""]


def _operations() -> list[str]:
    lines = ["## Operations", "", "| operation | arguments | optional |", "|---|---|---|"]
    for name, (required, optional) in ARGUMENTS.items():
        lines.append(f"| `{name}` | {', '.join(required)} | {', '.join(optional)} |")
    return [*lines, ""]


def tool_snapshots() -> dict[str, str]:
    """Return each tool as agents see it in tools/list, one file per tool."""
    tools = asyncio.run(mcp_server.list_tools())
    seen = {
        tool.name: tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
    }
    return {
        f"docs/tools/{name}.json": json.dumps(tool, indent=2, ensure_ascii=False) + "\n"
        for name, tool in seen.items()
    }


def readme() -> str:
    """Return the README with the part between its two marks regenerated."""
    lines = ["| what | addresses |", "|---|---|"]
    for category in dict.fromkeys(entry.category for entry in REGISTRY):
        patterns = [f"`{entry.pattern}`" for entry in REGISTRY if entry.category == category]
        more = f" and {len(patterns) - SHOWN} more" if len(patterns) > SHOWN else ""
        lines.append(f"| {category} | {' · '.join(patterns[:SHOWN])}{more} |")
    table = "\n".join(lines)
    written = (settings.BASE_DIR / "README.md").read_text()
    return re.sub(
        r"(<!-- addresses -->\n).*?(\n<!-- end -->)", rf"\1{table}\2", written, flags=re.DOTALL
    )


def connect_page() -> str:
    """Return docs/connect.md with the clients between its two marks as the Connect page shows
    them.
    """
    lines: list[str] = []
    for one in (*connections(LOCAL_URL), *checks(LOCAL_URL)):
        where = f", in `{one.place}`" if one.place else ""
        lines += [
            f"**{one.client}**{where}. {one.note}",
            "",
            f"```{one.language}",
            one.text,
            "```",
            "",
        ]
    written = (settings.BASE_DIR / "docs/connect.md").read_text()
    before, _, rest = written.partition("<!-- clients -->\n")
    return (
        f"{before}<!-- clients -->\n"
        + "\n".join(lines)
        + "<!-- end -->"
        + rest.partition("<!-- end -->")[2]
    )


def generated_files() -> dict[str, str]:
    pages = {
        "docs/mcp-list.csv": registry_csv(),
        "docs/addresses.md": addresses_page(),
        "README.md": readme(),
    }
    pages["docs/connect.md"] = connect_page()
    return pages | tool_snapshots()


class Command(BaseCommand):
    help = __doc__ or ""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; fail when a file is out of date"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        for name, content in generated_files().items():
            path: Path = settings.BASE_DIR / name
            if path.exists() and path.read_text() == content:
                continue
            if options["check"]:
                raise CommandError(f"{name} is out of date: run 'make docs'.")
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
            self.stdout.write(f"wrote {name}")
