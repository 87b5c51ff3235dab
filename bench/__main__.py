"""`make bench`, or `python -m bench --quick`: fills, serves, measures; writes bench/results.json and results.txt."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import figures, report
from bench.calls import BenchFailed
from bench.measuring import Site, measure_row, open_site
from bench.mirror import mirror_figures
from bench.rows import ROWS
from bench.servers import fill, surroundings
from bench.tokens import edit_tokens, tools_list_tokens

DATABASES = ("sqlite", "postgres")
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
QUICK_SHARE = 0.05
OTHER_STEPS = 5


@dataclass(frozen=True)
class Options:
    databases: tuple[str, ...]
    sizes: tuple[int, ...]
    share: float
    folder: Path

    @property
    def steps(self) -> int:
        return len(self.databases) * (len(ROWS) + OTHER_STEPS)


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The benchmark table.")
    parser.add_argument("--db", choices=DATABASES, help="one database instead of both")
    parser.add_argument("--sizes", type=_sizes, help="numbers of tasks, such as 1000,10000")
    parser.add_argument("--quick", action="store_true", help="1,000 and 10,000 tasks, under two minutes")
    parser.add_argument("--share", type=float, help="how much of the usual repetitions, such as 0.1")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent, help="the folder for the results")
    given = parser.parse_args(arguments)
    return Options(
        databases=(given.db,) if given.db else DATABASES,
        sizes=given.sizes or (QUICK_SIZES if given.quick else SIZES),
        share=given.share or (QUICK_SHARE if given.quick else 1.0),
        folder=given.output,
    )


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if sizes[0] < 10:
        raise argparse.ArgumentTypeError("at least 10 tasks")
    return sizes


def run(options: Options) -> str:
    """Writes after each database: what was measured is kept when something fails later. Returns the table."""
    machine, rows, by_database, text = report.machine(), [], {}, ""
    with report.steps(options.steps) as progress:
        for database in options.databases:
            with ExitStack() as stack:
                sites = _open_sites(stack, database, options, progress)
                for row in ROWS:
                    with progress.step(f"{database}: {row.name}"):
                        rows += measure_row(row, sites, options.share)
                by_database[database] = _figures(sites[-1], options, progress)
            with progress.step(f"{database}: mirroring IntelligenceBank"):
                by_database[database] |= mirror_figures(database, options.share)
            results = {"machine": machine, "rows": rows, "figures": figures.gather(rows, by_database)}
            text = report.write(results, options.folder)
    return text


def _open_sites(stack: ExitStack, database: str, options: Options, progress: report.Steps) -> list[Site]:
    around = stack.enter_context(surroundings(database))
    environments = {size: around(size) for size in options.sizes}
    with progress.step(f"{database}: filling {max(options.sizes):,} tasks"), ThreadPoolExecutor() as pool:
        filled = dict(zip(environments, pool.map(fill, environments.values(), environments), strict=True))
    with progress.step(f"{database}: starting {len(environments)} servers"):
        return [
            stack.enter_context(open_site(database, size, environment, filled[size]))
            for size, environment in environments.items()
        ]


def _figures(site: Site, options: Options, progress: report.Steps) -> dict[str, Any]:
    with progress.step(f"{site.database}: tokens of one edit"):
        tokens = edit_tokens(site.client) | {"tools_list_tokens": tools_list_tokens(site.client)}
    with progress.step(f"{site.database}: long history, throughput"):
        return figures.of_site(site, options.share) | tokens


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        print(run(options))
    except BenchFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
