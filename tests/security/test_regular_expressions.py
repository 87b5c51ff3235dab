"""Test that no text can stall a process through a regular expression: each is linear in the length
of its input.
"""

import signal
import subprocess
import sys

import pytest

from tests.architecture.rules import ROOT

# Earlier versions from frontmatter.py, item_files.py and tokens.py.
QUADRATIC = [
    (r"^([ \t]*(?:- +)*(?:[\w.-]+[ \t]*:[ \t]+|- +))([^\s'\"\[{|>].*?)[ \t]*$", "match"),
    (r"([A-Za-z_][\w .-]*?)[ \t]*:(?:[ \t]+|$)", "match"),
    (r"(?m)^#{1,6} +(.+?) *#* *$", "search"),
    (r"(?i)(task|epic)-0*([0-9]+)", "fullmatch"),
    (r"[ \t]*\|[ \t]*", "sub"),
]


def _run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def _slow_expressions() -> list[str]:
    """Return the names of the expressions that exceeded the CPU time limit."""
    slow: list[str] = []
    first = 0
    while True:
        run = _run("-m", "tests.security.expressions", str(first))
        *_, last = run.stdout.splitlines() or [""]
        if last == "done":
            return slow
        assert run.returncode == -signal.SIGPROF, run.stderr
        number, _, name = last.partition(" ")
        slow.append(name)
        first = int(number) + 1


def test_no_regular_expression_takes_long_for_any_text() -> None:
    assert _slow_expressions() == []


@pytest.mark.parametrize(("pattern", "method"), QUADRATIC)
def test_a_quadratic_expression_is_found_out(pattern: str, method: str) -> None:
    program = "import re, sys; from tests.security.expressions import Tried, attack\n"
    program += "attack(Tried('', re.compile(sys.argv[1]), (sys.argv[2],)))"
    assert _run("-c", program, pattern, method).returncode == -signal.SIGPROF
