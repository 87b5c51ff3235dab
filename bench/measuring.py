"""Send and time requests.

The sizes alternate within each row, so that a busy neighbour slows all of them equally.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from bench.calls import Call, ask, checked
from bench.picks import Picks
from bench.rows import Row
from bench.servers import Environment, Filled, Server, running_server

TURNS = 10
WARM_UP = 5
CLIENTS = 8


@dataclass(frozen=True)
class Site:
    database: str
    tasks: int
    environment: Environment
    filled: Filled
    server: Server
    client: httpx.Client
    picks: Picks


@dataclass
class Sample:
    """Hold the wall seconds of each request, and the server's CPU seconds over all of them."""

    walls: list[float] = field(default_factory=list)
    cpu: float = 0.0

    @property
    def p50_ms(self) -> float:
        return 1000 * statistics.median(self.walls)

    @property
    def p95_ms(self) -> float:
        return 1000 * statistics.quantiles(self.walls, n=20, method="inclusive")[-1]

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu / len(self.walls)


@contextmanager
def open_site(
    database: str, tasks: int, environment: Environment, filled: Filled
) -> Iterator[Site]:
    with running_server(environment, filled.token) as server, server.client() as client:
        yield Site(database, tasks, environment, filled, server, client, Picks(tasks))


def measure_rows(
    rows: Sequence[Row], sites: Sequence[Site], share: float = 1.0
) -> list[dict[str, Any]]:
    """Run `share` of the repetitions on each site.

    Rows given together alternate too, and request the same tasks.
    """
    pairs = [(row, site) for row in rows for site in sites]
    sources = [(replace(site, picks=Picks(site.tasks)), row.call) for row, site in pairs]
    samples = take_turns(sources, at_least_two(rows[0].repetitions * share))
    return [_as_json(row, site, sample) for (row, site), sample in zip(pairs, samples, strict=True)]


def take_turns(sources: Sequence[tuple[Site, Callable[[Picks], Call]]], count: int) -> list[Sample]:
    samples = [Sample() for _ in sources]
    turns = min(TURNS, count)
    for site, make_call in sources:
        for _ in range(min(WARM_UP, 1 + count // 5)):
            ask(site.client, make_call(site.picks))
    for _ in range(turns):
        for (site, make_call), sample in zip(sources, samples, strict=True):
            _sample(site, make_call, count // turns, sample)
    return samples


def at_least_two(count: float) -> int:
    """Return at least two; fewer have no quantiles."""
    return max(2, round(count))


def _sample(site: Site, make_call: Callable[[Picks], Call], count: int, sample: Sample) -> None:
    calls = [make_call(site.picks) for _ in range(count)]
    cpu = site.server.cpu_s()
    for call in calls:
        request = call.request(site.client)
        began = time.perf_counter()
        answer = site.client.send(request)
        sample.walls.append(time.perf_counter() - began)
        checked(answer, call)
    sample.cpu += site.server.cpu_s() - cpu


def _as_json(row: Row, site: Site, sample: Sample) -> dict[str, Any]:
    return {
        "name": row.name,
        "db": site.database,
        "tasks": site.tasks,
        "p50_ms": round(sample.p50_ms, 2),
        "p95_ms": round(sample.p95_ms, 2),
        "cpu_ms": round(sample.cpu_ms, 2),
        "n": len(sample.walls),
    }


def requests_per_s(site: Site, row: Row, seconds: float) -> float:
    """Return the throughput of eight clients, each with a separate connection."""
    began = time.perf_counter()

    def work(seed: int) -> int:
        picks, answered = Picks(site.tasks, seed), 0
        with site.server.client() as client:
            while not answered or time.perf_counter() < began + seconds:
                ask(client, row.call(picks))
                answered += 1
        return answered

    with ThreadPoolExecutor(CLIENTS) as clients:
        answered = sum(clients.map(work, range(CLIENTS)))
    return answered / (time.perf_counter() - began)
