"""Run `make test`: the suite on SQLite and PostgreSQL. Other arguments go to pytest.

The PostgreSQL server comes from a wheel unless TEST_DATABASE_URL (or DATABASE_URL) names one. Each
pytest process starts a Valkey unless REDIS_URL names one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.databases import postgres_template, sqlite_template
from tests.servers.postgres import throwaway_postgres

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".pytest_cache"
WORKERS = 2
# More failures than this are not caused by a busy machine.
MOST_REPEATED = 5
TESTS_FAILED = 1


@dataclass(frozen=True)
class Pass:
    key: str
    database: str
    environment: dict[str, str]

    @property
    def cache(self) -> Path:
        return CACHE / self.key


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run", description=__doc__)
    parser.add_argument("--db", choices=["sqlite", "postgres", "both"], default="both")
    options, arguments = parser.parse_known_args()
    with ExitStack() as servers:
        passes = [sqlite_pass(servers)] if options.db != "postgres" else []
        passes += [postgres_pass(servers)] if options.db != "sqlite" else []
        return run_all(passes, parallel(arguments))


def parallel(arguments: list[str]) -> list[str]:
    """Add workers unless the caller names files, whose tests start sooner without them."""
    names_files = any(Path(argument.partition("::")[0]).is_file() for argument in arguments)
    if (
        names_files
        or os.environ.get("REDIS_URL")
        or any(argument.startswith("-n") for argument in arguments)
    ):
        return arguments
    # xdist would put the files with the most tests first, and those that start processes last.
    in_order = ["--dist", "loadfile", "--no-loadscope-reorder"]
    return ["-n", str(WORKERS), *in_order, "--durations", "25", *arguments]


def sqlite_pass(servers: ExitStack) -> Pass:
    sqlite_template()
    return Pass("sqlite", "SQLite", environment(servers))


def postgres_pass(servers: ExitStack) -> Pass:
    url = given_postgres()
    source = "named by the environment" if url else "from the wheel"
    url = url or servers.enter_context(throwaway_postgres())
    postgres_template(url)
    return Pass("postgres", f"PostgreSQL ({source})", environment(servers) | {"DATABASE_URL": url})


def given_postgres() -> str | None:
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    url = os.environ.get("DATABASE_URL", "")
    return url if url.startswith("postgres") else None


def environment(servers: ExitStack) -> dict[str, str]:
    # With settings in the environment pytest-django would read them before tests/conftest.py starts
    # a Valkey.
    unwanted = {"DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
    inherited = {name: value for name, value in os.environ.items() if name not in unwanted}
    folder = servers.enter_context(tempfile.TemporaryDirectory(prefix="backlog-tests-"))
    return inherited | {"BACKLOG_DATA_DIR": folder}


def run_all(passes: list[Pass], arguments: list[str]) -> int:
    """Run the passes side by side.

    The output of the first is shown live, that of the second afterwards.
    """
    started = time.monotonic()
    if len(passes) == 1 or os.environ.get(
        "REDIS_URL"
    ):  # two passes would share the counters of one Valkey
        codes = [run(one, arguments) for one in passes]
    else:
        codes = run_together(passes, arguments)
    codes = [repeat_failures(one, code) for one, code in zip(passes, codes, strict=True)]
    print()
    for one, code in zip(passes, codes, strict=True):
        print(f"{one.database}: {f'FAILED, pytest ended with {code}' if code else 'passed'}")
    print(f"{time.monotonic() - started:.0f} s")
    return max(abs(code) for code in codes)


def run_together(passes: list[Pass], arguments: list[str]) -> list[int]:
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


def repeat_failures(one: Pass, code: int) -> int:
    """Run a few failed tests again, alone, and name those that pass now: they depend on a quiet
    machine.
    """
    failed = failed_tests(one) if code == TESTS_FAILED else []
    if not 0 < len(failed) <= MOST_REPEATED:
        return code
    print(f"\nRunning {len(failed)} failed tests on {one.database} again, alone:")
    code = run(one, failed)
    flaky = sorted(set(failed) - set(failed_tests(one) if code else []))
    print("\n".join(f"FLAKY on {one.database}, passed when repeated: {test}" for test in flaky))
    return code


def failed_tests(one: Pass) -> list[str]:
    try:
        return sorted(json.loads((one.cache / "v/cache/lastfailed").read_text()))
    except FileNotFoundError:
        return []


def run(one: Pass, arguments: list[str]) -> int:
    announce(one)
    with start(one, arguments) as process:
        try:
            return process.wait()
        except BaseException:
            process.terminate()
            raise


def announce(one: Pass) -> None:
    print(f"\n== Tests on {one.database}", flush=True)


def start(
    one: Pass, arguments: list[str], report: IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    # A pass whose output is not shown cannot answer prompts either, such as those of --pdb.
    answers = subprocess.DEVNULL if report else None
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={one.cache}", *arguments]
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
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
