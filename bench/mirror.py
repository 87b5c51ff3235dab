"""The mirror of IntelligenceBank, in a process and a database of its own."""

import json
import subprocess
import sys
from typing import Any

from bench.calls import BenchFailed
from bench.servers import ROOT, surroundings

ROWS = 100_000
PACED_ROWS = 5_000
FEWEST_ROWS = 300


def mirror_figures(database: str, share: float) -> dict[str, Any]:
    rows, paced = (max(FEWEST_ROWS, int(number * share)) for number in (ROWS, PACED_ROWS))
    with surroundings(database) as around:
        environment = around(rows)
        _manage(environment, "migrate", "--verbosity", "0")
        return dict(json.loads(_manage(environment, "bench_ib", str(rows), str(paced))))


def _manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if run.returncode:
        raise BenchFailed(f"{arguments[0]} failed:\n{run.stderr[-2000:]}")
    return run.stdout
