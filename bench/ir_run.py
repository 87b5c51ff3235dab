"""Measure one database of `bench.ir`: fill it with each collection, search, and print a JSON line
for each mode.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django
from django.test.utils import get_runner

django.setup()

from django.conf import settings  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from bench.ir import (  # noqa: E402
    DEPTH,
    MODES,
    Judged,
    Scores,
    collections,
    mean,
    read_judgements,
    read_lines,
    score,
)
from bench.kept_vectors import keep_vectors  # noqa: E402
from resources_app.models import Task  # noqa: E402
from search_app.filters import Filters, allowed_documents, limited_kinds  # noqa: E402
from search_app.index.rebuild import reindex  # noqa: E402
from search_app.index.write import current_state  # noqa: E402
from search_app.models import Document  # noqa: E402
from search_app.search import MAX_QUERY, search_unified  # noqa: E402
from search_app.semantic import meaning, worker  # noqa: E402
from search_app.semantic.snapshot import SNAPSHOT  # noqa: E402

# Task number → id in the collection.
Names = dict[str, str]
Search = Callable[[str, Names], list[str]]
READER = User(username="reader", is_superuser=True)


def main(folder: Path, vectors: Path) -> None:
    keep_vectors(vectors)
    runner = get_runner(settings)(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        found = [measure_apart(collection) for collection in collections(folder)]
    finally:
        runner.teardown_databases(databases)
    for mode in MODES:
        tell("mean", mode, mean([scores[mode] for scores in found]))


def measure_apart(collection: Path) -> dict[str, Scores]:
    SNAPSHOT.forget()
    with transaction.atomic():
        scores = measure(collection)
        transaction.set_rollback(True)
    for mode, values in scores.items():
        tell(collection.name, mode, values)
    return scores


def measure(collection: Path) -> dict[str, Scores]:
    """Measure every mode. The first runs by words alone, before there are vectors."""
    names = fill(collection)
    judged = read_judgements(collection / "qrels.tsv")
    scores = {"bm25": measure_mode(collection, judged, names, unified("bm25"))}
    while worker.embed_some(fence=lambda: None):
        pass
    scores["vector"] = measure_mode(collection, judged, names, nearest)
    return scores | {"hybrid": measure_mode(collection, judged, names, unified("hybrid"))}


def measure_mode(collection: Path, judged: Judged, names: Names, search: Search) -> Scores:
    queries = [
        query for query in read_lines(collection / "queries.jsonl") if query["_id"] in judged
    ]
    return mean(
        [score(search(query["text"][:MAX_QUERY], names), judged[query["_id"]]) for query in queries]
    )


def unified(mode: str) -> Search:
    def search(text: str, names: Names) -> list[str]:
        answer = search_unified(READER, text, limit=DEPTH)
        if answer["results"] and answer["search_mode"] != mode:
            raise RuntimeError(f"{text!r} was searched by {answer['search_mode']}, not {mode}.")
        return [names[result["id"]] for result in answer["results"]]

    return search


def nearest(text: str, names: Names) -> list[str]:
    allowed = allowed_documents(READER, current_state().live, Filters(), limited_kinds(READER))
    if allowed is None:
        return []
    near = meaning.near_documents(text, allowed, DEPTH)
    numbers = dict(Document.objects.filter(pk__in=near).values_list("pk", "object_id"))
    return [names[Task.make_ref(numbers[document])] for document in near]


def fill(collection: Path) -> Names:
    """Fill the tables directly. All documents have the same age."""
    now = timezone.now()
    rows = [
        (document["_id"], Task(number=n, **texts_of(document), created_at=now, updated_at=now))
        for n, document in enumerate(read_lines(collection / "corpus.jsonl"), start=1)
    ]
    Task.objects.bulk_create([task for _, task in rows], batch_size=500)
    reindex()
    return {task.ref: name for name, task in rows}


def texts_of(document: dict[str, Any]) -> dict[str, str]:
    return {"title": document["title"][:200].strip() or "-", "description": document["text"]}


def tell(name: str, mode: str, scores: Scores) -> None:
    print(json.dumps([name, mode, scores]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
