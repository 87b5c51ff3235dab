"""Run a second transaction beside the test's own, for what can happen only in between."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction

overlapping = pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite has one writer at a time: nobody can commit in between",
)


class Elsewhere(threading.Thread):
    """Write in a separate transaction, and commit on request."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self.work = work
        self.written, self.may_commit = threading.Event(), threading.Event()

    def run(self) -> None:
        try:
            with transaction.atomic():
                self.work()
                self.written.set()
                assert self.may_commit.wait(60)
        finally:
            connection.close()

    def __enter__(self) -> "Elsewhere":
        self.start()
        assert self.written.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.commit()

    def commit(self) -> None:
        self.may_commit.set()
        self.join(60)
        assert not self.is_alive()
