"""Test a run too small to measure speed: everything is requested over real HTTP, and the results
have their shape.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench import plots, report
from bench.goals import GOALS, LOADS
from bench.rows import ROWS

ROOT = Path(__file__).resolve().parent.parent.parent
TASKS = 50


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("bench")
    command = [
        sys.executable,
        "-m",
        "bench",
        "--db",
        "sqlite",
        "--sizes",
        str(TASKS),
        "--share",
        "0.01",
    ]
    run = subprocess.run(
        [*command, "--output", str(folder)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr + run.stdout
    assert (folder / "results.txt").read_text() in run.stdout
    return dict(json.loads((folder / "results.json").read_text()))


def test_every_row_is_measured_and_named(results: dict[str, Any]) -> None:
    assert set(results) == {"machine", "rows", "figures"}
    assert [row["name"] for row in results["rows"]] == [row.name for row in ROWS]
    for row in results["rows"]:
        assert set(row) == {"name", "db", "tasks", "p50_ms", "p95_ms", "cpu_ms", "n"}
        assert (row["db"], row["tasks"]) == ("sqlite", TASKS)
        assert 0 < row["p50_ms"] <= row["p95_ms"] and row["n"] > 0


def test_the_figures_name_what_they_were_counted_with(results: dict[str, Any]) -> None:
    figures = results["figures"]
    assert figures["token_counter"].startswith("o200k_base")
    tokens = figures["by_database"]["sqlite"]["edit_tokens"]
    ratio = tokens["read_all_write_all"]["tokens"] / tokens["write"]["tokens"]
    assert figures["edit_token_ratio"] == round(ratio, 1)
    for name in (
        "append_1mb_ratio",
        "cold_start_s",
        "rss_mb",
        "requests_per_s",
        "event_p95_ms",
        "tools_list_tokens",
        "ib_rows_per_s",
    ):
        assert figures[name] == figures["by_database"]["sqlite"][name] > 0
    assert set(figures["growth"]["sqlite"]) == {row.name for row in ROWS}
    assert figures["growth"]["sqlite"]["rest_get"]["p50"] == 1.0


def test_every_goal_has_its_figure_and_nothing_failed_under_load(results: dict[str, Any]) -> None:
    figures = results["figures"]
    assert {goal.figure for goal in (*GOALS, *LOADS)} <= figures.keys()
    assert not any(value for name, value in figures.items() if name.endswith("_failed"))
    assert figures["load_listen_p95_ms"] > 0 and figures["load_listen_streams"] == 5


def test_the_quality_of_search_outlives_a_run_without_judged_collections(
    results: dict[str, Any], tmp_path: Path
) -> None:
    report.write(results, tmp_path)
    report.add_quality({"ndcg10.cacm.bm25.sqlite": 0.5}, tmp_path)
    assert "ndcg10.cacm.bm25.sqlite" in report.write(results, tmp_path)
    assert report.read(tmp_path)["figures"]["ndcg10.cacm.bm25.sqlite"] == 0.5


def test_a_plot_has_a_panel_for_each_row_and_is_well_formed(results: dict[str, Any]) -> None:
    drawn = ElementTree.fromstring(plots.panels(results["rows"], "p50_ms", "p50 < all"))
    names = [
        text.text
        for text in drawn.iter("{http://www.w3.org/2000/svg}text")
        if text.get("class") == "name"
    ]
    assert names == ["p50 < all", *(row.name for row in ROWS)]


def test_a_size_that_cannot_be_measured_is_refused() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "bench", "--sizes", "3"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2 and "at least 10 tasks" in run.stderr
