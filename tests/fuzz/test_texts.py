"""Test texts of one piece of markdown repeated up to the maximum length: rendering stays fast."""

import subprocess
import sys

import pytest

from backlog_site.viewer.markdown import COSTLY, MAX_MARKS, MAX_TEXT, render
from tests.architecture.rules import ROOT
from tests.fuzz import cases

LENGTH = 2000 if cases.IS_SEEDED else MAX_TEXT
PIECES = [
    *("[", "![", "[](", "[a](", "[a]: x\n", "[^a]", "![a](mcp://backlog/x)", "(", "<", '<a href="', "<http://a", "&", "&amp;"),
    *("*", "*_", "**a ", "a**b", "~~a", "`", "``a`", "\\*", "#", "> ", ">", "- ", "- a\n", "- [ ] a\n", "1. ", "| a ", "|-"),
    *("http://a", "http://a.b ", "*http://a", "x.com ", "www.", "a@", "a@b.c ", "//a", "mailto:a@b.c", "file:///a.", "a.b"),
    *("mcp://", "mcp://a(", "mcp://...", "`mcp://a`", "TASK-0001", "TASK-0001 ", "```\n", "```mermaid\n", "\n", "\t", "    a\n"),
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_of_one_piece_is_rendered_in_time(piece: str) -> None:
    marks = sum(map(piece.count, COSTLY))
    text = piece * min(LENGTH // len(piece), MAX_MARKS // (marks or 1))
    assert isinstance(cases.in_time(lambda: render(text, may_tick=True)), str)


@pytest.mark.parametrize("piece", PIECES)
def test_a_text_of_one_piece_within_itself_is_rendered_in_time(piece: str) -> None:
    lines = "".join(" " * (2 * depth) + piece.strip("\n") + "\n" for depth in range(LENGTH // 400))
    assert isinstance(cases.in_time(lambda: render(lines)), str)


def test_no_text_takes_long_to_show() -> None:
    """Each of them within a limit of CPU time: the program ends at the first that takes longer."""
    command = [sys.executable, "-m", "tests.fuzz.costly"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1:] == ["done"], (
        run.returncode,
        run.stdout.splitlines()[-1:],
        run.stderr[-2000:],
    )
