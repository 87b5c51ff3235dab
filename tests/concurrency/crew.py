"""Run real processes on one database: a function of a test module runs in a fresh process and forks
as many as it needs.
"""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any

from django.db import connection, connections

from tests.other_processes import ROOT
from tests.servers.forks import ForkedPython

# A timeout for a crew that hangs; nothing is measured with it.
PATIENCE_SECONDS = 600
_FORKING = multiprocessing.get_context("fork")
_barrier: Barrier | None = None

CODE = (
    "import sys, django; django.setup(); from tests.concurrency import crew;"
    " crew.answer(*sys.argv[1:])"
)


def send(
    variables: dict[str, str],
    function: Callable[..., Any],
    *arguments: Any,
    patience: float = PATIENCE_SECONDS,
) -> Any:
    """Run the function in a separate process and return its answer.

    Arguments and answer travel as JSON.
    """
    command = [
        sys.executable,
        "-c",
        CODE,
        function.__module__,
        function.__name__,
        json.dumps(arguments),
    ]
    crew = ForkedPython(
        command, cwd=ROOT, env=variables, text=True, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        output, _ = crew.communicate(timeout=patience)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(crew.pid, signal.SIGKILL)
    assert crew.returncode == 0
    return json.loads(output.splitlines()[-1])


def answer(module: str, function: str, arguments: str) -> None:
    result = getattr(importlib.import_module(module), function)(*json.loads(arguments))
    print(json.dumps(result))


def together(work: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """Run one process for each argument. Each may `line_up()` once, to start when all are ready."""
    global _barrier
    each = list(arguments)
    leave_database()
    _barrier = _FORKING.Barrier(len(each))
    with _FORKING.Pool(len(each)) as pool:
        answers = pool.map(partial(_take_part, work), each, chunksize=1)
        pool.close()
        pool.join()
    return answers


def _take_part(work: Callable[[Any], Any], argument: Any) -> Any:
    assert _barrier is not None
    try:
        return work(argument)
    except BaseException:
        _barrier.abort()  # the others must not wait for a failed process
        raise


def leave_database() -> None:
    """Close connections before a fork: a connection, and a pool with its threads, belong to one
    process.
    """
    connections.close_all()
    if connection.vendor == "postgresql":
        connection.close_pool()


def line_up() -> None:
    assert _barrier is not None
    connection.ensure_connection()
    _barrier.wait(PATIENCE_SECONDS)
