"""Run the processes of one site as a tree: start them in order, restart the ones that exit, stop
all together.
"""

import errno
import fcntl
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from backlog_site.devserver.embedded import end_group, spawn

_TICK = 0.1
_NAME_WIDTH = 7


class CannotServe(Exception):
    """Raised when the site cannot start. The text says why and what to do."""


def _always() -> bool:
    return True


@dataclass(frozen=True, kw_only=True)
class Service:
    """Describe one process of the site.

    `descriptors` are open files, such as a listening socket, that it inherits.
    """

    name: str
    command: Sequence[str]
    is_ready: Callable[[], bool] = _always
    descriptors: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Compute the seconds before a fallen service restarts.

    They double until it has run for `reset_after`.
    """

    first: float = 0.5
    longest: float = 30
    reset_after: float = 30

    def delay(self, failures: int) -> float:
        return float(min(self.longest, self.first * 2 ** min(failures - 1, 16)))


@dataclass(frozen=True, kw_only=True)
class Settling:
    """Detect the end of start-up: no output for `quiet` seconds, or `longest` seconds since all
    services were ready.
    """

    quiet: float = 3
    longest: float = 30

    def is_over(self, ready_at: float, output: "_Output") -> bool:
        now = time.monotonic()
        return (
            now - max(ready_at, output.last_line_at) >= self.quiet or now - ready_at >= self.longest
        )


class Supervisor:
    """Start each stage when all services of the previous one are ready, and stop stages in reverse
    order.

    `on_ready` is called when all are ready, and again at the end of start-up if other lines came
    after it.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Service]],
        *,
        write: Callable[[str], None],
        on_ready: Callable[[], None] = lambda: None,
        backoff: Backoff | None = None,
        patience: float = 15,
        settling: Settling | None = None,
    ) -> None:
        self._output = _Output(write)
        self._stages = [
            [_Child(service, backoff or Backoff(), self._output) for service in stage]
            for stage in stages
        ]
        self._on_ready = on_ready
        self._settling = settling or Settling()
        self._patience = patience
        self._announced: float | None = None
        self._settled = False
        self._stop_requests = 0

    def run(self) -> None:
        """Run until SIGINT, SIGTERM or SIGHUP and return when no process is left.

        A second signal kills the remaining ones.
        """
        with _receiving((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), self._request_stop):
            try:
                while not self._stop_requests:
                    self._tick()
            finally:
                self._stop()

    def _request_stop(self, _number: int, _frame: object) -> None:
        self._stop_requests += 1

    def _tick(self) -> None:
        self._advance()
        self._output.pump(_TICK)
        for stage in self._stages:
            for child in stage:
                child.notice_end()

    def _advance(self) -> None:
        for stage in self._stages:
            for child in stage:
                child.start_when_due()
            if not all(child.has_been_ready() for child in stage):
                return
        if self._announced is None:
            self._announce()
        elif not self._settled and self._settling.is_over(self._announced, self._output):
            self._settled = True
            if self._output.last_line_at > self._announced:
                self._announce()

    def _announce(self) -> None:
        self._on_ready()
        self._announced = time.monotonic()

    def _stop(self) -> None:
        self._output.say("serve", "stopping")
        for stage in reversed(self._stages):
            for child in stage:
                child.request_end()
            self._wait_for(stage)
            for child in stage:
                child.kill()
        self._output.drain()

    def _wait_for(self, stage: Sequence["_Child"]) -> None:
        deadline = time.monotonic() + self._patience
        while (
            any(child.is_running for child in stage)
            and time.monotonic() < deadline
            and self._stop_requests < 2
        ):
            self._output.pump(_TICK)


class _Child:
    """Track one service across restarts."""

    def __init__(self, service: Service, backoff: Backoff, output: "_Output") -> None:
        self._service = service
        self._backoff = backoff
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._failures = 0
        self._due = self._started = time.monotonic()
        self._was_ready = False

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start_when_due(self) -> None:
        if self._process is None and time.monotonic() >= self._due:
            self._start()

    def _start(self) -> None:
        service = self._service
        self._started = time.monotonic()
        self._process = spawn(
            service.command,
            output=subprocess.PIPE,
            environment=service.environment,
            descriptors=service.descriptors,
        )
        if self._process.stdout is not None:
            self._output.attach(service.name, self._process.stdout)

    def has_been_ready(self) -> bool:
        self._was_ready = self._was_ready or (self.is_running and self._service.is_ready())
        return self._was_ready

    def notice_end(self) -> None:
        if self._process is None or self._process.poll() is None:
            return
        end_group(self._process)
        self._output.drain()
        if time.monotonic() - self._started >= self._backoff.reset_after:
            self._failures = 0
        self._failures += 1
        delay = self._backoff.delay(self._failures)
        self._due = time.monotonic() + delay
        self._output.say(
            "serve",
            f"{self._service.name} {_ending(self._process)}; starting it again in {delay:g} s",
        )
        self._process = None

    def request_end(self) -> None:
        # Signals only the leader: Celery's pool must finish its tasks, and SIGTERM would end it in
        # the middle of one.
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        if self._process is not None:
            end_group(self._process)


def _ending(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return (
        f"was killed by {signal.Signals(-code).name}"
        if code < 0
        else f"ended with exit code {code}"
    )


class _Output:
    """Write the output of the services line by line, prefixed with the service name."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._selector = selectors.DefaultSelector()
        self._unfinished: dict[int, bytes] = {}
        self.last_line_at = 0.0

    def say(self, name: str, line: str) -> None:
        self.last_line_at = time.monotonic()
        self._write(f"{name:<{_NAME_WIDTH}}| {line}")

    def attach(self, name: str, stream: IO[bytes]) -> None:
        os.set_blocking(stream.fileno(), False)
        self._unfinished[stream.fileno()] = b""
        self._selector.register(stream, selectors.EVENT_READ, (name, stream))

    def drain(self) -> None:
        while self.pump(0):
            pass

    def pump(self, seconds: float) -> bool:
        """Write the available output, waiting up to `seconds` for it.

        Return whether there was any.
        """
        events = self._selector.select(seconds)
        for key, _ in events:
            name, stream = key.data
            received = os.read(key.fd, 65536)
            self._take(name, key.fd, received)
            if not received:
                self._detach(name, key.fd, stream)
        return bool(events)

    def _take(self, name: str, descriptor: int, received: bytes) -> None:
        *lines, rest = (self._unfinished[descriptor] + received).split(b"\n")
        self._unfinished[descriptor] = rest
        for line in lines:
            self.say(name, line.decode(errors="replace"))

    def _detach(self, name: str, descriptor: int, stream: IO[bytes]) -> None:
        if rest := self._unfinished.pop(descriptor):
            self.say(name, rest.decode(errors="replace"))
        self._selector.unregister(stream)
        stream.close()


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock the data folder so that no second site writes to it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "serve.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.read().strip() or "unknown"
            raise CannotServe(
                f"A site is already running on {folder} (process {owner}). Stop it first."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket for as long as the site runs.

    While the web process restarts, clients wait in its queue.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            advice = f"Choose another one: make run PORT={port + 1}"
            raise CannotServe(
                f"Port {port} on {host} is taken by another program. {advice}"
            ) from None
        raise CannotServe(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}."
        ) from None
    # Connections inherit it. uvicorn does not set it on an inherited socket, and every small
    # response took 40 ms more.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


@contextmanager
def _receiving(
    signals: Sequence[signal.Signals], receiver: Callable[[int, object], None]
) -> Iterator[None]:
    previous = {number: signal.signal(number, receiver) for number in signals}
    try:
        yield
    finally:
        for number, action in previous.items():
            signal.signal(number, action)
