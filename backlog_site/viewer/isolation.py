"""Render text in a child process with a CPU time limit. A text that takes too long ends the child,
not the site.

Pygments and markdown-it match regular expressions while holding the GIL, so no thread can interrupt
them. The child sets a timer whose signal ends it inside the match; the next text starts a new
child.
"""

import atexit
import hashlib
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import structlog

# CPU seconds of the child for one text; the wall clock limit only detects a child that no longer
# answers.
CPU_SECONDS = 0.4
WALL_SECONDS = 10.0
MAX_CACHED = 4_000_000
_PACKAGE = Path(__file__).resolve().parent.parent
# `backlog_site` imports Celery and the settings, 20 MB that the child does not need: an empty
# package replaces it.
_BOOTSTRAP = """
import json, sys, types
sys.path[:] = json.loads(sys.argv[1])
package = types.ModuleType("backlog_site")
package.__path__ = [sys.argv[2]]
sys.modules["backlog_site"] = package
from backlog_site.viewer.render_process import serve
serve()
"""

_log = structlog.get_logger(__name__)


class _Unanswered(Exception):
    """Raised when the child could not be asked or did not answer in time.

    Says nothing about the text.
    """


class Cache:
    """Cache the most recently used results, bounded by their characters.

    None marks a text that cannot be rendered.
    """

    def __init__(self, max_characters: int = MAX_CACHED) -> None:
        self._max = max_characters
        self._size = 0
        self._kept: OrderedDict[bytes, str | None] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: bytes) -> tuple[bool, str | None]:
        with self._lock:
            if key not in self._kept:
                return False, None
            self._kept.move_to_end(key)
            return True, self._kept[key]

    def put(self, key: bytes, value: str | None) -> None:
        with self._lock:
            self._size += _cost(value) - (_cost(self._kept.pop(key)) if key in self._kept else 0)
            self._kept[key] = value
            while self._size > self._max:
                self._size -= _cost(self._kept.popitem(last=False)[1])


class Renderer:
    """Manage one child process, started on first use and again after it ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._cache = Cache()

    def render(self, **request: Any) -> str | None:
        """Return the HTML, or None if the text cannot be rendered within the limit."""
        line = json.dumps(request, sort_keys=True).encode() + b"\n"
        key = hashlib.sha256(line).digest()
        is_known, known = self._cache.get(key)
        if is_known:
            return known
        try:
            made = self._ask(line)
        except (_Unanswered, OSError) as error:
            _log.warning("renderer_unavailable", reason=str(error))
            return None
        self._cache.put(key, made)
        return made

    def close(self) -> None:
        with self._lock:
            self._end()

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    def _ask(self, line: bytes) -> str | None:
        if not self._lock.acquire(timeout=WALL_SECONDS):
            raise _Unanswered("other texts are being rendered")
        try:
            return self._exchange(line)
        finally:
            self._lock.release()

    def _exchange(self, line: bytes) -> str | None:
        child = self._started()
        if child.stdin is None or child.stdout is None:
            raise _Unanswered("the child has no pipes")
        try:
            child.stdin.write(line)
            child.stdin.flush()
            answer = _read_line(child.stdout.fileno())
        except (_Unanswered, OSError):
            self._end()
            raise
        if answer is None:
            _log.warning("render_ended_by_limit", status=self._end())
            return None
        return str(json.loads(answer))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._child is None or self._child.poll() is not None:
            self._end()
            self._child = _start()
        return self._child

    def _end(self) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        child.kill()
        # Closing stdin may flush a request that the child never read.
        for pipe in (child.stdin, child.stdout):
            try:
                if pipe:
                    pipe.close()
            except OSError:
                pass
        return child.wait()


def _start() -> subprocess.Popen[bytes]:
    """Start the child. It ends with this process, because its input ends."""
    return subprocess.Popen(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-I", "-c", _BOOTSTRAP, json.dumps(sys.path), str(_PACKAGE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def _read_line(descriptor: int) -> bytes | None:
    """Return the child's answer, or None if it ended.

    Uses `poll`, because a busy site has descriptors above 1,024.
    """
    deadline = time.monotonic() + WALL_SECONDS
    ready = select.poll()
    ready.register(descriptor, select.POLLIN)
    received = bytearray()
    while not received.endswith(b"\n"):
        if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise _Unanswered(f"no answer within {WALL_SECONDS} seconds")
        chunk = os.read(descriptor, 1 << 16)
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def _cost(value: str | None) -> int:
    """Return the cost of an entry.

    Keys and bookkeeping count, so that many rejected texts stay bounded.
    """
    return 200 + len(value or "")


renderer = Renderer()
atexit.register(renderer.close)
# A forked process must not share the pipes of its parent's child.
os.register_at_fork(after_in_child=renderer.__init__)  # type: ignore[misc]  # the same object, as if just made
