"""Provide servers that a test can start, stop, freeze and kill."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backlog_site.devserver.embedded import free_port


@pytest.fixture
def redis_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("v")


@pytest.fixture
def redis_url() -> str:
    return f"redis://127.0.0.1:{free_port()}"


@pytest.fixture
def postgres_home() -> Iterator[Path]:
    """Yield a folder outside pytest's, which other users cannot enter: under root, PostgreSQL runs
    as another user.
    """
    with tempfile.TemporaryDirectory(prefix="backlog-postgres-") as folder:
        yield Path(folder)


@pytest.fixture
def postgres_url() -> str:
    return f"postgres://postgres:secret@127.0.0.1:{free_port()}/postgres"
