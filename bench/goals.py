"""Define the goal of each figure, and how it is described."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    figure: str
    meaning: str
    most: float | None = None
    least: float | None = None

    @property
    def bound(self) -> str:
        if self.most is not None:
            return f"at most {self.most:g}"
        return "" if self.least is None else f"at least {self.least:g}"

    def is_met(self, figures: dict[str, Any]) -> bool:
        found = figures[self.figure]
        return (self.most is None or found <= self.most) and (
            self.least is None or found >= self.least
        )


GOALS = (
    Goal(
        "growth_flat",
        "get, list, append, create, batch: p50 at the most tasks over the fewest",
        most=1.5,
    ),
    Goal("growth_search", "search, context: p50 at the most tasks over the fewest", most=3),
    Goal("mcp_get_to_floor_cpu", "MCP get: CPU over that of a bare view with the same SQL", most=3),
    Goal("get_resource_to_read_p95", "get_resource: p95 over that of resources/read", most=1.1),
    Goal(
        "append_1mb_ratio",
        "append to 1 MB after 1,000 appends, over one to 1 MB just created",
        most=3,
    ),
    Goal(
        "edit_token_ratio",
        "one edit of 5,000 characters: tokens of read-all, write-all over those of the edit",
        least=20,
    ),
    Goal("tools_list_tokens", "tools/list, tokens", most=3000),
    Goal("cold_start_s", "cold start at the most tasks, s", most=5),
    Goal("cold_start_cpu_s", "cold start at the most tasks, CPU s"),
    Goal("rss_mb", "memory of a web process, MB", most=250),
    Goal("event_p95_ms", "write to subscriber, p95, ms", most=1000),
    Goal("requests_per_s", "REST get, 8 clients, one process, requests a second"),
    Goal("mcp_requests_per_s", "MCP get, 8 clients, one process, requests a second"),
    Goal("reindex_docs_per_cpu_s", "index rebuilt, documents a second of CPU", least=1000),
    Goal(
        "index_update_p95_ms", "one task entered into the index of the most tasks, p95, ms", most=5
    ),
    Goal("ib_rows_per_s", "IntelligenceBank mirrored, rows a second"),
    Goal("ib_sync_to_read_ratio", "the same at the usual pace, over merely reading the pages"),
)
# The numbers refer to the load goals L1 to L4.
LOADS = (
    Goal(
        "load_rest_list_per_s",
        "L1: REST list of 20, 16 connections, two processes, requests a second",
        least=250,
    ),
    Goal("load_rest_list_p95_ms", "L1: p95, ms", most=100),
    Goal("load_rest_list_failed", "L1: not answered with success", most=0),
    Goal(
        "load_mcp_get_per_s",
        "L2: MCP get, 16 connections, two processes, requests a second",
        least=200,
    ),
    Goal("load_mcp_get_p95_ms", "L2: p95, ms", most=100),
    Goal("load_mcp_get_failed", "L2: not answered with success", most=0),
    Goal(
        "load_write_apart_per_s",
        "L3: write_resource, 16 agents on 16 tasks, writes a second",
        least=100,
    ),
    Goal("load_write_apart_p95_ms", "L3: p95, ms", most=300),
    Goal("load_write_apart_failed", "L3: not answered with success", most=0),
    Goal("load_write_one_per_s", "L3: 16 agents on one task, writes a second", least=50),
    Goal("load_write_one_p95_ms", "L3: p95, ms", most=300),
    Goal("load_write_one_failed", "L3: not answered with success", most=0),
    Goal("load_listen_streams", "L4: open subscriptions/listen, one process, a write a second"),
    Goal("load_listen_p95_ms", "L4: write to notice, p95 over all of them, ms", most=1000),
    Goal("load_listen_rss_streams_mb", "L4: memory that opening them took, MB"),
    Goal("load_listen_rss_growth_mb", "L4: memory that grew from then on, MB", most=50),
    Goal("load_listen_closed_s", "L4: all closed after their token was revoked, s", most=5),
)
