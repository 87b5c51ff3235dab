"""Test that long jobs write in short transactions with gaps between them, so that concurrent
writers do not fail.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from resources_app.interchange.scan import scan
from resources_app.jobs import time_slices
from resources_app.jobs.time_slices import BUDGET_SECONDS
from resources_app.models import Resource
from search_app.index.rebuild import reindex, sweep
from search_app.models import Document, Passage
from search_app.semantic import worker
from search_app.semantic.worker import embed_some
from tests.factories import make_task
from tests.resources_app.trees import run_import, write_file

COST_SECONDS = 0.02
MOST_STATEMENTS = 3  # as many of that cost as fit into the budget


class Ledger:
    """Charge COST_SECONDS for every statement that starts with `counted`, and count them per
    outermost transaction.
    """

    def __init__(self, counted: str) -> None:
        self.counted = counted
        self.now = 0.0
        self.per_transaction: list[int] = []
        self.pauses: list[int] = []
        self._depth = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SAVEPOINT"):
            self._depth += 1
            if self._depth == 1:
                self.per_transaction.append(0)
        elif sql.startswith(("RELEASE SAVEPOINT", "ROLLBACK TO SAVEPOINT")):
            self._depth -= 1
        elif sql.startswith(self.counted):
            assert self._depth
            self.per_transaction[-1] += 1
            self.now += COST_SECONDS
        return execute(sql, params, many, context)

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        assert seconds > 0 and not self._depth
        self.pauses.append(len(self.per_transaction))

    @property
    def most(self) -> int:
        return max(self.per_transaction)

    @property
    def total(self) -> int:
        return sum(self.per_transaction)


@contextmanager
def ledger_of(monkeypatch: pytest.MonkeyPatch, counted: str) -> Iterator[Ledger]:
    ledger = Ledger(counted)
    monkeypatch.setattr(time_slices, "clock", ledger.clock)
    monkeypatch.setattr(time_slices, "pause", ledger.pause)
    with connection.execute_wrapper(ledger):
        yield ledger


@pytest.fixture
def root(tmp_path: Path, settings: Settings, db: None) -> Path:
    for number in range(20):
        (tmp_path / f"{number}.md").write_text(f"Text {number}")
    settings.RESOURCE_ROOTS = {"docs": tmp_path}
    return tmp_path


def test_a_part_holds_what_fits_into_its_budget_and_one_item_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_costs = [0.01, 0.02, 0.03, 0.5, 0.5, 0.0, 0.01]
    now, pauses, parts = [0.0], list[float](), list[list[float]]()
    monkeypatch.setattr(time_slices, "clock", lambda: now[0])
    monkeypatch.setattr(time_slices, "pause", pauses.append)
    for part in time_slices.time_slices(with_costs):
        parts.append([])
        for cost in part:
            parts[-1].append(cost)
            now[0] += cost
    assert parts == [[0.01, 0.02, 0.03], [0.5], [0.5], [0.0, 0.01]]
    assert all(sum(part[:-1]) < BUDGET_SECONDS for part in parts)
    assert len(pauses) == len(parts)


def test_the_first_scan_of_a_root_takes_a_slice_of_files_per_transaction(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_of(monkeypatch, 'INSERT INTO "resources_app_resource" ') as ledger:
        assert scan().added == 20
    assert ledger.total == 20 and ledger.most == MOST_STATEMENTS
    assert len(ledger.pauses) == 7


def test_files_that_are_gone_are_archived_a_slice_per_transaction(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan()
    for file in root.iterdir():
        file.unlink()
    with ledger_of(monkeypatch, 'UPDATE "resources_app_resource" ') as ledger:
        assert scan().removed == 20
    assert ledger.total == 20 and ledger.most == MOST_STATEMENTS
    assert not Resource.objects.live().exists()


@pytest.mark.django_db
def test_a_rebuild_of_the_index_takes_a_slice_per_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(40):
        make_task(title=f"Task {number}")
    with ledger_of(monkeypatch, "INSERT INTO search_app_document ") as ledger:
        assert reindex() == 40
    assert ledger.total == 8 and ledger.most == MOST_STATEMENTS


@pytest.mark.django_db
def test_the_sweep_takes_a_slice_per_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        make_task(title=f"Task {number}")
    Document.objects.all().delete()
    with ledger_of(monkeypatch, "INSERT INTO search_app_document ") as ledger:
        assert sweep() == 40
    assert ledger.total == 8 and ledger.most == MOST_STATEMENTS


@pytest.mark.django_db
def test_embedded_texts_are_stored_a_slice_per_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(worker.CHUNK):
        make_task(title=f"Task {number}", description=f"Text {number}")
    fences: list[int] = []
    with ledger_of(monkeypatch, 'INSERT INTO "search_app_passage" ') as ledger:
        assert embed_some(lambda: fences.append(1)) == worker.CHUNK
    assert ledger.total == worker.CHUNK and ledger.most == MOST_STATEMENTS
    assert len(fences) == len(ledger.per_transaction)
    assert Passage.objects.count() >= worker.CHUNK


@pytest.mark.django_db
def test_the_comments_of_one_item_are_imported_a_slice_per_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path, "tasks/TASK-0001.md", "---\ntitle: Talk\n---\n")
    lines = [
        f'{{"created_at": "2026-01-01T00:00:{n:02}Z", "body": "Word {n}"}}\n' for n in range(40)
    ]
    write_file(tmp_path, "comments/TASK-0001.jsonl", "".join(lines))
    with ledger_of(monkeypatch, 'INSERT INTO "resources_app_comment" ') as ledger:
        assert run_import(tmp_path).counts["comments created"] == 40
    assert ledger.total == 40 and ledger.most == MOST_STATEMENTS
