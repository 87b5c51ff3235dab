"""`make test`: the whole suite on SQLite and on PostgreSQL, each beside a Valkey of its own. Arguments go to pytest.

The servers come from wheels, unless TEST_DATABASE_URL (or a DATABASE_URL of a PostgreSQL) and REDIS_URL name others.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from backlog_site.embedded import throwaway_postgres, throwaway_valkey

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Pass:
    database: str
    environment: dict[str, str]


def main(arguments: list[str]) -> int:
    with ExitStack() as servers:
        passes = [sqlite_pass(servers), postgres_pass(servers)]
        codes = run_together(passes, arguments) if owns_valkey() else [run(one, arguments) for one in passes]
    print()
    for one, code in zip(passes, codes, strict=True):
        print(f"{one.database}: {f'FAILED, pytest ended with {code}' if code else 'passed'}")
    return max(abs(code) for code in codes)


def sqlite_pass(servers: ExitStack) -> Pass:
    return Pass("SQLite", environment(servers))


def postgres_pass(servers: ExitStack) -> Pass:
    if url := given_postgres():
        return Pass("PostgreSQL (named by the environment)", environment(servers) | {"DATABASE_URL": url})
    url = servers.enter_context(throwaway_postgres())
    return Pass("PostgreSQL (from the wheel)", environment(servers) | {"DATABASE_URL": url})


def given_postgres() -> str | None:
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith("postgres") else None


def owns_valkey() -> bool:
    return not os.environ.get("REDIS_URL")


def environment(servers: ExitStack) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    folder = servers.enter_context(tempfile.TemporaryDirectory(prefix="backlog-tests-"))
    valkey = servers.enter_context(throwaway_valkey()) if owns_valkey() else os.environ["REDIS_URL"]
    return inherited | {"BACKLOG_DATA_DIR": folder, "REDIS_URL": valkey}


def run_together(passes: list[Pass], arguments: list[str]) -> list[int]:
    """One core each: the first pass is shown as it runs, the other one afterwards."""
    shown, kept = passes
    with tempfile.TemporaryFile() as report, start(kept, arguments, report) as process:
        try:
            code = run(shown, arguments)
            process.wait()
        except BaseException:
            process.terminate()
            raise
        announce(kept)
        report.seek(0)
        sys.stdout.buffer.write(report.read())
        sys.stdout.flush()
        return [code, process.returncode]


def run(one: Pass, arguments: list[str]) -> int:
    announce(one)
    with start(one, arguments) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


def announce(one: Pass) -> None:
    print(f"\n== Tests on {one.database}, with Valkey at {one.environment['REDIS_URL']}", flush=True)


def start(one: Pass, arguments: list[str], report: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    # A pass that is not shown cannot ask questions either, such as those of --pdb.
    answers = subprocess.DEVNULL if report else None
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=one.environment,
        stdin=answers,
        stdout=report,
        stderr=subprocess.STDOUT if report else None,
    )


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
