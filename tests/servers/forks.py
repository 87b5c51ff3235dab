"""Start Python processes as forks of a process that has the third-party packages imported."""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from backlog_site.devserver.embedded import spawn, stop
from tests.servers import fork_server

ROOT = Path(__file__).resolve().parents[2]


class ForkServer:
    """Ask one fork server for processes. It starts with the first request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: socket.socket | None = None

    def fork(self, request: dict[str, Any], descriptors: list[int]) -> tuple[int, int]:
        """Return the pid of the new process and a pipe that will say its exit code."""
        report, report_end = os.pipe()
        with self._lock:
            if self._requests is None:
                self._requests = self._start()
            data = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(self._requests, [data], [*descriptors, report_end])
            self._requests.sendall(data[sent:])
            os.close(report_end)
            pid = _line(report)
        assert pid is not None, "the fork server has ended"
        return pid, report

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            process = spawn(
                [sys.executable, "-m", fork_server.__name__, str(theirs.fileno())],
                output=sys.__stderr__.fileno(),
                folder=ROOT,
                descriptors=[theirs.fileno()],
            )
        atexit.register(stop, process, signal.SIGKILL)
        return ours


def _line(pipe: int) -> int | None:
    text = b""
    while not text.endswith(b"\n"):
        more = os.read(pipe, 1)
        if not more:
            return None
        text += more
    return int(text)


class ForkedPython(subprocess.Popen[Any]):
    """Run `[sys.executable, ...]` in a fork. Behaves as Popen does, whose pipes it uses.

    The fork server is the parent of the process, so that its exit code comes through a pipe.
    """

    _server = ForkServer()

    def _execute_child(self, args: list[str], *others: Any) -> None:
        (_, _, _, _, cwd, env, _, _, _, *pipes, _, _, _, _, _, start_new_session, _) = others
        stdin, _, _, stdout, _, stderr = pipes
        request = {
            "arguments": [os.fspath(one) for one in args[1:]],
            "environment": dict(os.environ if env is None else env),
            "folder": os.fspath(cwd or Path.cwd()),
            "start_new_session": start_new_session,
        }
        inherited = (sys.__stdin__, sys.__stdout__, sys.__stderr__)
        descriptors = [
            usual.fileno() if given == -1 else given
            for given, usual in zip((stdin, stdout, stderr), inherited, strict=True)
        ]
        self.pid, self._report = self._server.fork(request, descriptors)
        self._child_created = True
        self._close_pipe_fds(*pipes)

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        return self._wait_for_report(0)

    def _wait(self, timeout: float | None) -> int:
        code = self._wait_for_report(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _wait_for_report(self, timeout: float | None) -> int | None:
        with self._waitpid_lock:
            if self.returncode is None and select.select([self._report], [], [], timeout)[0]:
                code = _line(self._report)
                os.close(self._report)
                self.returncode = -signal.SIGKILL if code is None else code
        return self.returncode


def fork(
    command: list[str], *, output: IO[bytes], environment: dict[str, str], folder: Path
) -> ForkedPython:
    """Do what `spawn` does, with a Python process that need not import the packages."""
    return ForkedPython(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
