"""Give each test the environment of processes that share its database."""

from pathlib import Path

import pytest

from tests.other_processes import shared_environment


@pytest.fixture
def variables(
    transactional_db: None, django_db_serialized_rollback: None, tmp_path: Path
) -> dict[str, str]:
    """Return the environment of a database with only roles and counters; the crews fill it
    themselves.
    """
    # One connection each: fifty processes with pools of several would exceed the server's limit. A
    # long lock timeout, because waiting on a busy machine is not under test.
    return shared_environment(tmp_path, BACKLOG_DB_POOL="1", BACKLOG_LOCK_SECONDS="300")
