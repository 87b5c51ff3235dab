"""Run `make bench`, or `python -m bench --quick`: fill, serve and measure; write bench/results.json
and results.txt.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import docs, figures, report
from bench.calls import BenchFailed
from bench.load import load_figures
from bench.measuring import Site, measure_rows, open_site
from bench.mirror import mirror_figures
from bench.rows import groups
from bench.servers import Surroundings, fill, surroundings
from bench.streams import listen_figures
from bench.tokens import edit_tokens, tools_list_tokens

DATABASES = ("sqlite", "postgres")
SIZES = (1_000, 10_000, 100_000)
QUICK_SIZES = (1_000, 10_000)
QUICK_SHARE = 0.05
OTHER_STEPS = 7


@dataclass(frozen=True)
class Options:
    databases: tuple[str, ...]
    sizes: tuple[int, ...]
    share: float
    folder: Path

    @property
    def steps(self) -> int:
        return len(self.databases) * (len(groups()) + OTHER_STEPS)


def parse(arguments: Sequence[str]) -> Options:
    parser = argparse.ArgumentParser(prog="python -m bench", description="The benchmark table.")
    parser.add_argument("--db", choices=DATABASES, help="one database instead of both")
    parser.add_argument("--sizes", type=_sizes, help="numbers of tasks, such as 1000,10000")
    parser.add_argument(
        "--quick", action="store_true", help="1,000 and 10,000 tasks, under two minutes"
    )
    parser.add_argument(
        "--share", type=float, help="how much of the usual repetitions, such as 0.1"
    )
    parser.add_argument(
        "--output", type=Path, default=report.FOLDER, help="the folder for the results"
    )
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
    """Measure and return the table.

    Writes after each database, so that results survive a later failure.
    """
    machine, rows, by_database, text = report.machine(), [], {}, ""
    with report.steps(options.steps) as progress:
        for database in options.databases:
            with surroundings(database) as around, ExitStack() as stack:
                sites = _open_sites(stack, around, database, options, progress)
                for group in groups():
                    with progress.step(f"{database}: {', '.join(row.name for row in group)}"):
                        rows += measure_rows(group, sites, options.share)
                by_database[database] = _figures(sites[-1], options, progress)
                with progress.step(f"{database}: mirroring IntelligenceBank"):
                    by_database[database] |= mirror_figures(around, options.share)
            results = {
                "machine": machine,
                "rows": rows,
                "figures": figures.gather(rows, by_database),
            }
            text = report.write(results, options.folder)
    return text


def _open_sites(
    stack: ExitStack, around: Surroundings, database: str, options: Options, progress: report.Steps
) -> list[Site]:
    with (
        progress.step(f"{database}: filling {max(options.sizes):,} tasks"),
        ThreadPoolExecutor() as pool,
    ):
        environments = {size: around(size) for size in options.sizes}
        filled = dict(
            zip(environments, pool.map(fill, environments.values(), environments), strict=True)
        )
    with progress.step(f"{database}: starting {len(environments)} servers"):
        return [
            stack.enter_context(open_site(database, size, environment, filled[size]))
            for size, environment in environments.items()
        ]


def _figures(site: Site, options: Options, progress: report.Steps) -> dict[str, Any]:
    with progress.step(f"{site.database}: tokens of one edit"):
        tokens = edit_tokens(site.client) | {"tools_list_tokens": tools_list_tokens(site.client)}
    with progress.step(f"{site.database}: long history, throughput"):
        found = figures.of_site(site, options.share) | tokens
    with progress.step(f"{site.database}: sixteen at once"):
        found |= load_figures(site, options.share)
    with progress.step(f"{site.database}: many listeners"):
        return found | listen_figures(site, options.share)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        print(run(options))
        if options.folder == report.FOLDER:
            docs.write()
    except BenchFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
