"""No text can stop a process by way of a regular expression: each is linear, or what it is given is bounded."""

import signal
import subprocess
import sys

from tests.architecture.rules import ROOT


def _slow_expressions() -> tuple[list[str], int]:
    """Return the names of the expressions that were ended by the limit, and how many were tried."""
    slow: list[str] = []
    first = 0
    while True:
        command = [sys.executable, "-m", "tests.security.expressions", str(first)]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        *_, last = run.stdout.splitlines() or [""]
        if run.returncode == 0:
            assert last == "done"
            return slow, first
        assert run.returncode == -signal.SIGPROF, run.stderr
        number, _, name = last.partition(" ")
        slow.append(name)
        first = int(number) + 1


def test_no_regular_expression_takes_long_for_any_text() -> None:
    slow, _ = _slow_expressions()
    assert slow == []
