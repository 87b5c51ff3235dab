"""Run Python processes beside the test's own, all on one database with the current content of the
test's database.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from tests.servers.forks import ForkedPython

ROOT = Path(__file__).resolve().parent.parent
PRELUDE = "import django; django.setup()\n"
# A timeout for a process that hangs; nothing is measured with it.
PATIENCE_SECONDS = 90


def shared_environment(folder: Path, **over: str) -> dict[str, str]:
    """Return the environment.

    Needs a test without a surrounding transaction (`transactional_db`).
    """
    return environment(folder, _shared_database(folder)) | over


def environment(folder: Path, database_url: str) -> dict[str, str]:
    return os.environ | {
        "DATABASE_URL": database_url,
        "REDIS_URL": settings.REDIS_URL,
        "BACKLOG_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
    }


def start(variables: dict[str, str], code: str, *arguments: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    return ForkedPython(
        command, cwd=ROOT, env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def run(variables: dict[str, str], code: str, *arguments: Any) -> str:
    return result(start(variables, code, *arguments))


def result(process: subprocess.Popen[str]) -> str:
    try:
        output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 0
    return output.strip()


def _shared_database(folder: Path) -> str:
    parts = connection.settings_dict
    if connection.vendor == "postgresql":
        return f"postgres://{parts['USER']}:{parts['PASSWORD']}@{parts['HOST']}:{parts['PORT']}/{parts['NAME']}"
    # The tests' own SQLite is in memory, where no other process can reach it.
    file = folder / "shared.sqlite3"
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(file)])
    return f"sqlite:///{file}"
