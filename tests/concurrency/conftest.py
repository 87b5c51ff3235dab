"""Each test gets the environment of processes that share its database."""

from pathlib import Path

import pytest

from tests.other_processes import shared_environment


@pytest.fixture
def variables(transactional_db: None, django_db_serialized_rollback: None, tmp_path: Path) -> dict[str, str]:
    """Of a database with roles and counters and nothing else; the crews fill it themselves."""
    # One connection each: fifty processes with pools of several would be more than the server takes.
    # And patience: how long they wait for each other on a busy machine is not the question.
    return shared_environment(tmp_path, BACKLOG_DB_POOL="1", BACKLOG_LOCK_SECONDS="300")
