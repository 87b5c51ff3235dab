"""Run `python -m bench.docs`: write bench/results.json into README and docs/ as tables and plots;
--check only compares.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench import plots, report
from bench.goals import GOALS, LOADS, Goal
from bench.servers import ROOT

IMAGES = "docs/images/bench"
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
# The rows of the contract; bench/results.txt has the others.
SHOWN = {
    "mcp_get": "MCP get",
    "mcp_list20": "MCP list of 20",
    "mcp_search": "MCP search",
    "mcp_search_filtered": "MCP search, open tasks",
    "mcp_context": "MCP context",
    "mcp_append": "MCP append",
    "mcp_create": "MCP create",
    "mcp_batch100": "MCP batch of 100",
    "rest_list50": "REST list of 50",
    "get_resource": "get_resource",
    "resources_read": "resources/read",
    "floor_get": "the floor: a bare view, one SELECT",
}
_PLACE = re.compile(r"(<!-- figures -->\n).*?(\n<!-- end of figures -->)", re.DOTALL)
_INTRODUCTION = """# Performance

`make docs` builds this page from `bench/results.json`, which `make bench` writes: over real HTTP,
to one web process as `make run` starts it, one request at a time unless said otherwise. CPU is that
of the web process alone. Repeat it with:
`make bench` (`ARGS=--quick` is shorter), and `make bench IR=dir` for the quality of search."""


def generated_files() -> dict[str, str]:
    results = report.read()
    rows = [row for row in results["rows"] if row["name"] in SHOWN]
    return {
        "README.md": _PLACE.sub(
            lambda found: found[1] + _summary(results) + found[2], _read("README.md")
        ),
        "docs/performance.md": _page(results),
        f"{IMAGES}/p50.svg": plots.panels(rows, "p50_ms", "p50 in ms, by the number of tasks"),
        f"{IMAGES}/cpu.svg": plots.panels(
            rows, "cpu_ms", "CPU of the web process in ms, by the number of tasks"
        ),
    }


def write() -> list[str]:
    """Write the files and return the names of changed ones."""
    return [name for name in out_of_date() if _write(name, generated_files()[name])]


def out_of_date() -> list[str]:
    return [name for name, content in generated_files().items() if _read(name) != content]


def _read(name: str) -> str:
    path = ROOT / name
    return path.read_text() if path.exists() else ""


def _write(name: str, content: str) -> int:
    path: Path = ROOT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.write_text(content)


def _summary(results: dict[str, Any]) -> str:
    databases, most = _databases(results), max(_sizes(results))
    cells = {_key(row): f"{row['p50_ms']:.1f} ms" for row in results["rows"]}
    lines = [
        [f"{SHOWN[name]}, p50", *(cells[name, database, most] for database in databases)]
        for name in (
            "mcp_get",
            "mcp_list20",
            "mcp_search",
            "mcp_context",
            "mcp_append",
            "mcp_batch100",
            "rest_list50",
        )
    ]
    chosen = [goal for goal in (*GOALS, *LOADS) if goal.figure in _IN_README]
    lines += [[_IN_README[goal.figure], *_each(results, goal)] for goal in chosen]
    return "\n".join(
        [
            f"With {most:,} tasks, one web process on {_machine(results)}:",
            "",
            *_table(["", *(NAMES[database] for database in databases)], lines),
            "",
            f"![p50 of each request by the number of tasks]({IMAGES}/p50.svg)",
        ]
    )


_IN_README = {
    "requests_per_s": "REST get, 8 clients, requests a second",
    "mcp_requests_per_s": "MCP get, 8 clients, requests a second",
    "event_p95_ms": "from a write to its subscriber, p95 in ms",
    "edit_token_ratio": "tokens of an edit: read-all, write-all over ours",
    "rss_mb": "memory of a web process in MB",
}


def _page(results: dict[str, Any]) -> str:
    sections = [
        _INTRODUCTION,
        (
            f"Measured on {_machine(results)}; {_software(results)}. Load before the run:"
            f" {results['machine']['load_before']}."
        ),
        _section("What was to be reached", _goals(results, GOALS)),
        _section("Many at once", _goals(results, LOADS)),
        "![p50 of each request by the number of tasks](images/bench/p50.svg)",
        "![CPU of each request by the number of tasks](images/bench/cpu.svg)",
        *(
            _section(f"{NAMES[database]}: p50 / p95 / CPU, ms", _rows(results, database))
            for database in _databases(results)
        ),
        *_quality(results),
    ]
    return "\n\n".join(sections) + "\n"


def _section(heading: str, lines: Iterable[str]) -> str:
    return "\n".join([f"## {heading}", "", *lines])


def _goals(results: dict[str, Any], goals: Sequence[Goal]) -> list[str]:
    headings = ["figure", *(NAMES[database] for database in _databases(results)), "goal", ""]
    return _table(
        headings,
        [
            [goal.meaning, *_each(results, goal), goal.bound, _verdict(results, goal)]
            for goal in goals
        ],
    )


def _each(results: dict[str, Any], goal: Goal) -> list[str]:
    return [f"{own[goal.figure]:g}" for own in results["figures"]["by_database"].values()]


def _verdict(results: dict[str, Any], goal: Goal) -> str:
    if not goal.bound:
        return ""
    return "met" if goal.is_met(results["figures"]) else "**missed**"


def _rows(results: dict[str, Any], database: str) -> list[str]:
    sizes = _sizes(results)
    cells = {
        _key(row): f"{row['p50_ms']:.1f} / {row['p95_ms']:.1f} / {row['cpu_ms']:.1f}"
        for row in results["rows"]
    }
    figures = results["figures"]
    lines = [
        [
            label,
            *(cells[name, database, size] for size in sizes),
            f"{figures['growth'][database][name]['p50']:g}",
            f"{figures['floor_ratio'][database].get(name, 1):g}",
        ]
        for name, label in SHOWN.items()
    ]
    return _table(
        ["", *(f"{size:,} tasks" for size in sizes), "growth of p50", "CPU over the floor"], lines
    )


def _quality(results: dict[str, Any]) -> list[str]:
    """Return the search quality table.

    The judged collections are third-party and not part of this repository.
    """
    found = report.quality(results["figures"])
    keys = [name.removeprefix("ndcg10.") for name in found if name.startswith("ndcg10.")]
    if not keys:
        return []
    lines = [
        [*key.split("."), *(f"{found.get(f'{kind}{key}', 0):.4f}" for kind in report.QUALITY)]
        for key in keys
    ]
    return [
        _section(
            "Quality of search",
            _table(["collection", "by", "database", "nDCG@10", "recall@100"], lines),
        )
    ]


def _machine(results: dict[str, Any]) -> str:
    machine = results["machine"]
    return f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']:g} GB"


def _software(results: dict[str, Any]) -> str:
    named = ("python", "django", "uvicorn", "sqlite", "postgres")
    return ", ".join(f"{name} {results['machine'][name]}" for name in named)


def _databases(results: dict[str, Any]) -> list[str]:
    return list(results["figures"]["by_database"])


def _sizes(results: dict[str, Any]) -> list[int]:
    return sorted({row["tasks"] for row in results["rows"]})


def _key(row: dict[str, Any]) -> tuple[str, str, int]:
    return row["name"], row["db"], row["tasks"]


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> list[str]:
    rows = [headings, ["---"] * len(headings), *lines]
    return [f"| {' | '.join(row)} |" for row in rows]


def main(arguments: Sequence[str]) -> int:
    if "--check" not in arguments:
        print("\n".join(f"wrote {name}" for name in write()))
        return 0
    late = out_of_date()
    if late:
        print(f"Out of date, run 'make docs': {', '.join(late)}", file=sys.stderr)
    return len(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
