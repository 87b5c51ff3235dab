"""Run `make conformance`: the official suite, for both eras, against two web processes of the site;
and the official clients.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from backlog_site.devserver.embedded import free_port, spawn, stop, throwaway_valkey
from tests.mcp.conformance.official import check_clients
from tests.npm import node_modules

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
REVISIONS = ("2025-11-25", "2026-07-28")
START_SECONDS = 60


@dataclass(frozen=True)
class Result:
    """Hold one scenario: its number of passed checks, and the messages of the others."""

    scenario: str
    is_scored: bool
    passed: int
    failures: list[str]


def main() -> int:
    modules = node_modules(HERE / "package.json", "backlog-conformance")
    with (
        tempfile.TemporaryDirectory(prefix="backlog-conformance-") as folder,
        throwaway_valkey() as redis,
    ):
        environment = prepare_site(Path(folder), redis)
        with serving(environment, Path(folder)) as url:
            results = [
                result
                for revision in REVISIONS
                for result in run_suite(modules, url, revision, Path(folder))
            ]
        results += run_clients(modules, Path(folder), environment)
    return report(results)


def prepare_site(folder: Path, redis: str) -> dict[str, str]:
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "SECRET_KEY"}
    }
    environment |= {
        "BACKLOG_DATA_DIR": str(folder / "site"),
        "REDIS_URL": redis,
        "BACKLOG_LOG_LEVEL": "WARNING",
    }
    manage(environment, "migrate", "--verbosity", "0")
    script = (
        "from django.contrib.auth.models import User; User.objects.create_superuser('conformance')"
    )
    manage(environment, "shell", "--verbosity", "0", "--command", script)
    token = manage(
        environment, "create_token", "conformance", "--name", "conformance", "--scope", "admin"
    )
    return environment | {"CONFORMANCE_TOKEN": token.strip()}


def manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


@contextmanager
def serving(environment: dict[str, str], folder: Path) -> Iterator[str]:
    port = free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "tests.mcp.conformance.asgi:application"),
        *(
            "--port",
            str(port),
            "--workers",
            "2",
            "--lifespan",
            "on",
            "--no-access-log",
            "--log-level",
            "warning",
        ),
        *("--timeout-graceful-shutdown", "2"),
    ]
    with (folder / "web.log").open("wb") as log:
        process = spawn(command, output=log, environment=environment, folder=ROOT)
    try:
        wait_for(f"http://127.0.0.1:{port}/mcp", process)
        yield f"http://127.0.0.1:{port}/mcp"
    except BaseException:
        sys.stderr.write((folder / "web.log").read_text(errors="replace"))
        raise
    finally:
        stop(process)


def wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            urllib.request.urlopen(url, timeout=2)
        except urllib.error.HTTPError:
            return  # it answers: a bare GET has no session
        except OSError:
            time.sleep(0.2)
    raise SystemExit("The site did not start.")


def run_suite(modules: Path, url: str, revision: str, folder: Path) -> list[Result]:
    suite = modules / "@modelcontextprotocol/conformance"
    output = folder / revision
    command = [str(modules / "node/bin/node"), str(suite / "dist/index.js"), "server", "--url", url]
    with (folder / "suite.log").open("ab") as log:
        command += ["--requirements", revision, "--output-dir", str(output)]
        subprocess.run(command, cwd=folder, stdout=log, stderr=log, check=False)
    required = yaml.safe_load((suite / "requirements" / f"{revision}.yaml").read_text())
    scored = set(required["server"])
    others = {entry["scenario"] for entry in required["not_scored"] if entry["leg"] == "server"}
    results = [
        read_result(output, scenario, scenario in scored) for scenario in sorted(scored | others)
    ]
    show(f"Requirements of {revision}", results)
    return results


def run_clients(modules: Path, folder: Path, environment: dict[str, str]) -> list[Result]:
    found = check_clients(modules, folder, environment)
    results = [Result(name, True, int(not problems), problems) for name, problems in found]
    show("Official clients", results)
    return results


def read_result(output: Path, scenario: str, is_scored: bool) -> Result:
    # The folder's name ends with the time of the run: 2026-11-16T03-35-22-098Z
    found = [
        path
        for path in output.glob(f"server-{scenario}-*/checks.json")
        if _scenario_of(path) == scenario
    ]
    if not found:
        return Result(scenario, is_scored, 0, ["the suite has no result for it"])
    checks = json.loads(found[0].read_text())
    failures = [
        f"{check['id']}: {check.get('errorMessage')}"
        for check in checks
        if check["status"] == "FAILURE"
    ]
    return Result(
        scenario, is_scored, sum(check["status"] == "SUCCESS" for check in checks), failures
    )


def _scenario_of(path: Path) -> str:
    return path.parent.name.removeprefix("server-")[: -len("-2026-11-16T03-35-22-098Z")]


def show(title: str, results: list[Result]) -> None:
    print(f"\n== {title}")
    for result in sorted(results, key=lambda result: not result.is_scored):
        mark = "ok  " if not result.failures else "FAIL" if result.is_scored else "-   "
        print(
            f"{mark} {result.scenario}: {result.passed} passed, {len(result.failures)} failed",
            end="",
        )
        print("" if result.is_scored else " (not scored)")
        for failure in result.failures if result.is_scored else []:
            print(f"       {failure}")


def report(results: list[Result]) -> int:
    """Count only what the revisions require: not extensions, nor scenarios added after their
    release.
    """
    scored = [result for result in results if result.is_scored]
    failed = sum(len(result.failures) for result in scored)
    print(f"\n{sum(result.passed for result in scored)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
