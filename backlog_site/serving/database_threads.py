"""Run synchronous domain code from the event loop on a few threads that all requests and streams
share.

asgiref would run everything on one thread of the process, or on a new thread with a new database
connection for each request. A stream must not hold a thread for its lifetime.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection

from backlog_site.serving.outage import outage

P = ParamSpec("P")
T = TypeVar("T")

SQLITE_CONNECTION_SECONDS = 60
LOOP_PATIENCE_SECONDS = 10

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop] = contextvars.ContextVar("mcp_loop")


class DatabaseThreads:
    def __init__(self, count: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(count, name, initializer=_keep_sqlite_connection)

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the function with the caller's context variables.

        If the caller is cancelled, the function still finishes.
        """
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(_loop.set, loop)
        return await loop.run_in_executor(
            self._pool, partial(context.run, _call, partial(function, *args, **kwargs))
        )


def in_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine in the event loop from inside such a thread, for example to report
    progress.
    """
    return asyncio.run_coroutine_threadsafe(coroutine, _loop.get()).result(LOOP_PATIENCE_SECONDS)


def _call(function: Callable[[], T]) -> T:
    try:
        return function()
    except (OperationalError, InterfaceError) as error:
        outage.suspect(error)
        raise
    finally:
        # No request_finished signal fires here. With PostgreSQL this returns the connection to the
        # pool.
        close_old_connections()


def _keep_sqlite_connection() -> None:
    """Keep the SQLite connection: opening one, with its pragmas, costs more than most calls.

    PostgreSQL's pool allows no maximum age.
    """
    if connection.vendor == "sqlite":
        connection.settings_dict = {
            **connection.settings_dict,
            "CONN_MAX_AGE": SQLITE_CONNECTION_SECONDS,
        }


in_thread = DatabaseThreads(settings.MCP_DATABASE_THREADS, "mcp-database").run
