"""Measure the IntelligenceBank mirror, in a separate process and database."""

import json
from typing import Any

from bench.servers import Surroundings, manage

ROWS = 50_000
PACED_ROWS = 5_000
FEWEST_ROWS = 300


def mirror_figures(around: Surroundings, share: float) -> dict[str, Any]:
    rows, paced = (max(FEWEST_ROWS, int(number * share)) for number in (ROWS, PACED_ROWS))
    return dict(json.loads(manage(around("mirror"), "bench_ib", str(rows), str(paced))))
