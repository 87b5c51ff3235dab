"""Check that templates and styles keep to lines of 120 columns."""

import re
from pathlib import Path

import pytest

from tests.architecture.rules import ROOT

WIDTH = 120
FOLDERS = ("backlog_site", "resources_app")
# A value that cannot be broken, such as a text to copy, on a line of its own.
_ONE_ATTRIBUTE = re.compile(r'\s*[\w-]+="[^"]*"')


def sheets() -> list[Path]:
    styles = (ROOT / "backlog_site/viewer/static/viewer").glob("*.css")
    templates = (path for name in FOLDERS for path in (ROOT / name).rglob("templates/**/*.html"))
    return [*templates, *styles]


def too_wide(text: str) -> list[int]:
    """Return the numbers of lines that are too wide and could be broken."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH and not _ONE_ATTRIBUTE.fullmatch(line)
    ]


def test_there_are_templates_to_judge() -> None:
    names = {path.name for path in sheets()}
    assert {"base.html", "_item.html", "connect.html", "confirm.html", "app.css"} <= names


def test_lines_of_templates_and_styles_are_short() -> None:
    found = {str(path.relative_to(ROOT)): too_wide(path.read_text()) for path in sheets()}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("line", "is_too_wide"),
    [
        ("x" * WIDTH, False),
        ("x" * (WIDTH + 1), True),
        (f'    data-copy="{"x" * WIDTH}"', False),
        (f'    <p title="{"x" * WIDTH}">', True),
        (f'    class="{"x" * WIDTH}" id="{"x" * 4}"', True),
    ],
    ids=["at-the-limit", "over-it", "one-attribute", "a-tag", "two-attributes"],
)
def test_only_one_long_attribute_may_be_wider(line: str, is_too_wide: bool) -> None:
    assert bool(too_wide(f"<!doctype html>\n{line}\n")) == is_too_wide
