"""How many cases are tried, and what holds for every one of them.

2,000 in all in the ordinary suite, always the same ones; FUZZ_CASES=60000 (`make fuzz`) for a long run of new ones.
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


def fuzz(share: float) -> Any:
    """Settings for a test that takes its share of all cases."""
    return settings(
        max_examples=max(1, int(CASES * share)),
        deadline=None,
        derandomize=IS_SEEDED,
        database=None,
        phases=[Phase.generate] if IS_SEEDED else [Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def check(ask: Callable[[], Any]) -> None:
    """An answer or one of the contract's errors, in less work than counts as a hang."""
    started = time.thread_time()
    response = ask()
    assert time.thread_time() - started < HANG_SECONDS, "it took too long"
    if response.status_code in (200, 201, 204, 304):
        return
    error = error_of(response)
    allowed = CODES[error["code"]]
    assert response.status_code in (allowed if isinstance(allowed, tuple) else (allowed,)), error
    assert error["message"]
    assert not any(leak in response.content.decode() for leak in ("Traceback", "site-packages", "SELECT ", "INSERT "))
