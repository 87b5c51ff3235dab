"""Define the number of cases, and what holds for every one of them.

The ordinary suite runs 2,000 in all, always the same ones; FUZZ_CASES=60000 (`make fuzz`) runs many
new ones.
"""

import os
import time
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from tests.api.clients import error_of

CASES = int(os.environ.get("FUZZ_CASES", "2000"))
IS_SEEDED = "FUZZ_CASES" not in os.environ
HANG_SECONDS = 2
# On a busy machine a retry is answered in time; a truly slow request is not.
ATTEMPTS = 3
CODES = {
    "not_found": 404,
    "permission_denied": 403,
    "conflict": 409,
    "operation_failed": 422,
    "invalid_operation": (400, 405),
    "validation_failed": (400, 406, 413, 415),
    "invalid_uri": 400,
    "unauthenticated": 401,
}
LEAKS = ("Traceback", "site-packages", "SELECT ", "INSERT ")


def fuzz(share: float) -> Any:
    """Return settings for a test that takes its share of all cases."""
    return settings(
        max_examples=max(1, int(CASES * share)),
        deadline=None,
        derandomize=IS_SEEDED,
        database=None,
        phases=[Phase.generate] if IS_SEEDED else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


class Tally:
    """Count the cases, and report progress every few thousand, because a long run is watched."""

    step = 2000

    def __init__(self, tell: Callable[[str], None] = print) -> None:
        self.cases = 0
        self.slowest = 0.0
        self._started = time.monotonic()
        self._tell = tell

    def add(self, seconds: float) -> None:
        self.cases += 1
        self.slowest = max(self.slowest, seconds)
        if not IS_SEEDED and self.cases % self.step == 0:
            self._tell(str(self))

    def __str__(self) -> str:
        rate = self.cases / (time.monotonic() - self._started)
        return f"{self.cases:,} cases, {rate:,.0f} a second, the slowest took {self.slowest:.2f} s"


tally = Tally()


def in_time(ask: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> Any:
    """Return the answer within the time limit.

    In-process calls are limited by CPU time, regardless of other load; HTTP calls by wall-clock
    time. The ordinary suite has no time limit.
    """
    for _ in range(1 if IS_SEEDED else ATTEMPTS):
        started = clock()
        answer = ask()
        took = clock() - started
        if took < HANG_SECONDS:
            break
    tally.add(took)
    assert IS_SEEDED or took < HANG_SECONDS, f"it took {took:.1f} seconds, {ATTEMPTS} times"
    return answer


def check(ask: Callable[[], Any], sent: object) -> None:
    """Check for a success or one of the contract's errors that reveals no internals.

    It may echo the input.
    """
    response = in_time(ask)
    if response.status_code in (200, 201, 204, 304):
        return
    error = error_of(response)
    allowed = CODES[error["code"]]
    assert response.status_code in (allowed if isinstance(allowed, tuple) else (allowed,)), error
    assert error["message"]
    told = response.content.decode()
    assert [leak for leak in LEAKS if leak in told and leak not in str(sent)] == []
