"""Compute the figures beside the rows: growth, the cost of a long history, throughput, start and
memory.
"""

import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from bench import texts
from bench.calls import Call, ask
from bench.mcp import listening
from bench.measuring import Sample, Site, at_least_two, requests_per_s, take_turns
from bench.picks import Picks
from bench.rows import append_to, row_named, uri_of
from bench.tokens import COUNTER

MEGABYTE = 1_000_000
REVISIONS = 1_000
LARGE_APPENDS = 60
THROUGHPUT_S = 10.0
EVENTS = 100
FLOOR = "floor_get"
# Index look-ups must not grow with the table; a search reads its matches.
FLAT = (
    "rest_get",
    "mcp_get",
    "rest_list50",
    "mcp_list20",
    "mcp_append",
    "mcp_create",
    "mcp_batch100",
)
SEARCHING = ("mcp_search", "mcp_search_filtered", "mcp_context")
# For these more is better.
_MORE = ("_per_s", "_per_cpu_s", "edit_token_ratio", "load_listen_streams")


def of_site(site: Site, share: float) -> dict[str, Any]:
    return {
        **append_1mb(site, at_least_two(REVISIONS * share), at_least_two(LARGE_APPENDS * share)),
        "requests_per_s": round(
            requests_per_s(site, row_named("rest_get"), THROUGHPUT_S * share), 1
        ),
        "mcp_requests_per_s": round(
            requests_per_s(site, row_named("mcp_get"), THROUGHPUT_S * share), 1
        ),
        "event_p95_ms": round(event_latency(site, at_least_two(EVENTS * share)).p95_ms, 1),
        "reindex_docs_per_cpu_s": site.filled.reindex_docs_per_cpu_s,
        "index_update_p95_ms": site.filled.index_update_p95_ms,
        "cold_start_s": round(site.server.cold_start_s, 2),
        "cold_start_cpu_s": round(site.server.cold_start_cpu_s, 2),
        "rss_mb": round(site.server.rss_mb(), 1),
        "tasks": site.tasks,
    }


def append_1mb(site: Site, revisions: int, count: int) -> dict[str, Any]:
    """Compare an append to a megabyte after `revisions` appends with one to a new megabyte."""
    aged, fresh = (_create_large(site) for _ in range(2))
    for _ in range(revisions):
        ask(site.client, _append(aged))
    old, new = take_turns([(site, partial(_append, aged)), (site, partial(_append, fresh))], count)
    for ref in (aged, fresh):
        # Otherwise every list measured after this would begin with two megabytes.
        ask(site.client, Call(f"/api/v1/tasks/{ref}/", method="DELETE"))
    return {
        "append_1mb_ratio": round(old.p50_ms / new.p50_ms, 2),
        "append_1mb_cpu_ratio": round(old.cpu_ms / new.cpu_ms, 2),
        "append_1mb_fresh_p50_ms": round(new.p50_ms, 2),
        "append_1mb_revisions": revisions,
    }


def _create_large(site: Site) -> str:
    body = {"title": "A very long description", "description": texts.markdown(1, MEGABYTE)}
    return str(ask(site.client, Call("/api/v1/tasks/", body)).json()["id"])


def _append(ref: str, _picks: Picks | None = None) -> Call:
    return Call("/api/v1/write/", append_to(ref))


def event_latency(site: Site, count: int) -> Sample:
    """Measure from sending a write to its notice on a stream that listens to the task."""
    ref, sample = site.picks.ref(), Sample()
    with site.server.client() as subscriber, listening(subscriber, uri_of(ref)) as methods:
        for _ in range(count):
            began = time.perf_counter()
            ask(site.client, _append(ref))
            next(methods)
            sample.walls.append(time.perf_counter() - began)
    return sample


def gather(rows: list[dict[str, Any]], by_database: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return each figure as the worst of the databases, then per database."""
    grown, floor = growth(rows, by_database), to_floor(rows, by_database)
    for database, own in by_database.items():
        own["growth_flat"] = max(grown[database][name]["p50"] for name in FLAT)
        own["growth_search"] = max(grown[database][name]["p50"] for name in SEARCHING)
        own["mcp_get_to_floor_cpu"] = floor[database]["mcp_get"]
        own["get_resource_to_read_p95"] = _beside(rows, database, "get_resource", "resources_read")
    return {
        "token_counter": COUNTER,
        **_worst(by_database),
        "by_database": by_database,
        "growth": grown,
        "floor_ratio": floor,
    }


def _worst(by_database: dict[str, dict[str, Any]]) -> dict[str, float]:
    first, *_ = each = list(by_database.values())
    numbers = [name for name, value in first.items() if isinstance(value, int | float)]
    return {
        name: (min if name.endswith(_MORE) else max)(own[name] for own in each) for name in numbers
    }


def _beside(rows: list[dict[str, Any]], database: str, one: str, other: str) -> float:
    """Return the p95 ratio of two rows at the largest size."""
    return round(
        _ends(rows, database, one)[1]["p95_ms"] / _ends(rows, database, other)[1]["p95_ms"], 2
    )


def growth(rows: list[dict[str, Any]], databases: Iterable[str]) -> dict[str, Any]:
    """Return for each row the ratio of the figure at the largest size to the one at the
    smallest.
    """
    return {
        database: {name: _ratios(*_ends(rows, database, name)) for name in _names(rows)}
        for database in databases
    }


def to_floor(rows: list[dict[str, Any]], databases: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the ratio of each row's CPU time to that of the bare view, at the largest size."""
    return {
        database: {
            name: _ratios(_ends(rows, database, FLOOR)[1], _ends(rows, database, name)[1])["cpu"]
            for name in _names(rows)
            if name != FLOOR
        }
        for database in databases
    }


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["name"] for row in rows))


def _ends(
    rows: list[dict[str, Any]], database: str, name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    found = sorted(
        (row for row in rows if (row["db"], row["name"]) == (database, name)),
        key=lambda row: row["tasks"],
    )
    return found[0], found[-1]


def _ratios(low: dict[str, Any], high: dict[str, Any]) -> dict[str, float]:
    """Return the ratios.

    The server's clock ticks every 10 ms, so a very short run may show no CPU time at all.
    """
    return {
        name: round(high[f"{name}_ms"] / (low[f"{name}_ms"] or 0.01), 2) for name in ("p50", "cpu")
    }
