"""Work on a run for one turn, and turn failures into a pause or a readable end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog
from django.utils import timezone

from resources_app.intelligencebank import connections, linking
from resources_app.intelligencebank.client import IBClient
from resources_app.intelligencebank.failures import (
    AuthRequired,
    BudgetSpent,
    IBFailure,
    Unreachable,
)
from resources_app.intelligencebank.retrying import LONGEST_RETRY_AFTER
from resources_app.intelligencebank.sync import completeness, runs, sweeping
from resources_app.intelligencebank.sync.crawl import Crawl
from resources_app.intelligencebank.sync.runs import Status
from resources_app.intelligencebank.sync.stages import STAGES
from resources_app.models import IBConnection, IBLink, IBSyncRun

# Limits of a worker's turn: other jobs need the worker too, and a kill loses little.
TURN_PAGES = 60
TURN_SECONDS = 30.0
MAX_FAILURES = 5
FIRST_PAUSE = timedelta(seconds=30)

Progress = Callable[[int, int, str], None]
logger = structlog.get_logger("backlog.intelligencebank")


@dataclass(frozen=True)
class Turn:
    pages: int = TURN_PAGES
    seconds: float = TURN_SECONDS


ENDLESS = Turn(10**9, 10**9)


def work(run: IBSyncRun, turn: Turn, progress: Progress | None = None) -> bool:
    """Return True while there is more to do at once. A paused run has its own resume time."""
    client = connections.client_for(run.connection)
    try:
        with runs.lease(run) as fence:
            if run.status == Status.PAUSED:
                runs.resume(run)
            _guarded(run, client, fence, turn, progress)
    finally:
        client.close()
    if run.status == Status.COMPLETE and run.counters.get("folders"):
        _read_rights(run.connection)
    return run.status == Status.RUNNING


def _guarded(
    run: IBSyncRun, client: IBClient, fence: int, turn: Turn, progress: Progress | None
) -> None:
    try:
        _advance(run, client, fence, turn, progress)
    except BudgetSpent as spent:
        runs.pause(run, timezone.now() + timedelta(seconds=spent.retry_after), str(spent))
    except Unreachable as failure:
        _pause_or_give_up(run, failure)
    except AuthRequired as failure:
        _end(run, Status.AUTH_REQUIRED, str(failure))
        require_auth(run.connection, str(failure))
    except (IBFailure, completeness.TooManyMalformed) as failure:
        _end(run, Status.FAILED, str(failure))
    except completeness.Incomplete as missed:
        _end(run, Status.INCOMPLETE, str(missed))
    except sweeping.Tripped as tripped:
        run.counters |= {"would_hide": tripped.would_hide}
        _end(run, Status.TRIPPED, str(tripped))
        runs.trip(run.connection, str(tripped))


def _read_rights(connection: IBConnection) -> None:
    """Read rights again because the tree may have grown: a new folder is invisible until the right
    to it is read.
    """
    for link in IBLink.objects.filter(connection=connection, expires_at__gt=timezone.now()):
        linking.request_rights(link)


def _advance(
    run: IBSyncRun, client: IBClient, fence: int, turn: Turn, progress: Progress | None
) -> None:
    crawl = Crawl(run, client, fence)
    until = time.monotonic() + turn.seconds
    try:
        for _ in range(turn.pages):
            STAGES[run.checkpoint["stage"]](crawl)
            if progress:
                progress(*standing(run))
            if run.status != Status.RUNNING or time.monotonic() > until:
                return
    finally:
        crawl.close()


def standing(run: IBSyncRun) -> tuple[int, int, str]:
    """Return the rows so far, the approximate total, and the stage."""
    done = run.counters.get("rows", 0)
    return done, max(done, run.checkpoint.get("count") or 0), run.checkpoint.get("stage", "")


def _pause_or_give_up(run: IBSyncRun, failure: Unreachable) -> None:
    if run.failures + 1 >= MAX_FAILURES:
        return _end(run, Status.FAILED, str(failure))
    asked = min(failure.retry_after or 0, LONGEST_RETRY_AFTER)
    wait = timedelta(seconds=asked) if asked else FIRST_PAUSE * 2**run.failures
    return runs.pause(run, timezone.now() + wait, str(failure))


def _end(run: IBSyncRun, status: str, reason: str) -> None:
    runs.finish(run, status, reason)
    logger.warning(
        "ib_sync_ended",
        client_id=run.connection.client_id,
        kind=run.kind,
        status=status,
        reason=reason,
    )


def require_auth(connection: IBConnection, reason: str) -> None:
    connection.state, connection.state_reason = IBConnection.State.AUTH_REQUIRED, reason
    connection.save(update_fields=["state", "state_reason"])
