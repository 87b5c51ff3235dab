"""Run `python -m bench.ir DIR`: nDCG@10, MRR@10 and recall@100 on judged collections, by words, by
meaning and by both.

DIR holds corpus.jsonl (_id, title, text), queries.jsonl and qrels.tsv, or folders that do.
Documents become tasks, searched through `search_unified` in separate databases: SQLite and
PostgreSQL, unless --db names one.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import docs, report
from bench.servers import ROOT, surroundings

DEPTH = 100
MODES = ("bm25", "vector", "hybrid")
DATABASES = ("sqlite", "postgres")
Ranking = list[str]
Judged = dict[str, dict[str, int]]
# Scores of one mode: nDCG@10, MRR@10 and recall@100.
Scores = dict[str, float]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.ir", description="Retrieval quality on judged collections."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--db", choices=DATABASES, help="one database instead of both")
    parser.add_argument(
        "--vectors", type=Path, help="a folder that keeps the vectors for the next run"
    )
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="backlog-ir-") as folder:
        vectors = given.vectors or Path(folder)
        for database in (given.db,) if given.db else DATABASES:
            report.add_quality(run_in(database, given.folder, vectors))
    docs.write()
    return 0


def run_in(database: str, folder: Path, vectors: Path) -> dict[str, float]:
    """Measure in a separate process, because Django has one database per process."""
    figures = {}
    with surroundings(database) as environment:
        command = [
            sys.executable,
            "-m",
            "bench.ir_run",
            str(folder.resolve()),
            str(vectors.resolve()),
        ]
        started = subprocess.Popen(
            command, cwd=ROOT, env=environment("ir", bare=True), stdout=subprocess.PIPE, text=True
        )
        for printed in started.stdout or ():
            name, mode, scores = json.loads(printed)
            print(line(name, database, mode, scores), flush=True)
            figures[f"ndcg10.{name}.{mode}.{database}"] = round(scores["ndcg"], 4)
            figures[f"recall100.{name}.{mode}.{database}"] = round(scores["recall"], 4)
        if started.wait():
            raise SystemExit(f"Measuring on {database} failed.")
    return figures


def collections(folder: Path) -> Iterator[Path]:
    if (folder / "corpus.jsonl").exists():
        yield folder
    else:
        yield from sorted(path.parent for path in folder.glob("*/corpus.jsonl"))


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def read_judgements(path: Path) -> Judged:
    judged: Judged = {}
    for row in path.read_text().splitlines()[1:]:
        query, document, gain = row.split("\t")
        if int(gain) > 0:
            judged.setdefault(query, {})[document] = int(gain)
    return judged


def score(ranking: Ranking, relevant: dict[str, int]) -> Scores:
    gains = [relevant.get(document, 0) for document in ranking]
    ideal = _discounted(sorted(relevant.values(), reverse=True)[:10])
    first = next((rank for rank, gain in enumerate(gains[:10], start=1) if gain), 0)
    return {
        "ndcg": _discounted(gains[:10]) / ideal,
        "mrr": 1 / first if first else 0.0,
        "recall": sum(1 for gain in gains[:DEPTH] if gain) / len(relevant),
    }


def _discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def mean(scores: list[Scores]) -> Scores:
    return {name: sum(one[name] for one in scores) / len(scores) for name, _ in _LABELS}


def line(name: str, database: str, mode: str, scores: Scores) -> str:
    shown = "  ".join(f"{label} {scores[key]:.4f}" for key, label in _LABELS)
    return f"{name:12} {database:9} {mode:7} {shown}"


_LABELS = (("ndcg", "nDCG@10"), ("mrr", "MRR@10"), ("recall", "recall@100"))

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
