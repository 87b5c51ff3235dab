"""Define the rows of the table: each has a name, a number of repetitions and a request."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from bench import texts
from bench.calls import Call
from bench.mcp import mcp, tool
from bench.picks import Picks

BATCH = 100
# Common and rare words, an id, an identifier, a prefix, a misspelling.
QUERIES = (
    "TASK-0502",
    "expired token",
    "sign-in keyboard",
    "billing_17.py",
    "nightly import retried",
    "scanned contract index",
    "expor",
    "webhok",
    "the list of changes reported by two customers",
    "staging seconds deploy",
)
FILTERS = {"types": ["task"], "status": ["open", "in_progress"]}


@dataclass(frozen=True)
class Row:
    name: str
    repetitions: int
    call: Callable[[Picks], Call]


def uri_of(ref: str, *field: str) -> str:
    return "/".join(("mcp://backlog/tasks", ref, *field))


def append_to(ref: str) -> dict[str, Any]:
    operation = {
        "type": "append",
        "content": "\n- Checked again on staging: the plan still shows one index scan.",
    }
    return {"uri": uri_of(ref, "description"), "operation": operation}


def _new_task(picks: Picks) -> dict[str, Any]:
    number = picks.number()
    return {
        "title": texts.title(number),
        "description": texts.markdown(number, 1000),
        "labels": ["new", f"label-{number % 50}"],
        "epic_id": "EPIC-0003",
        "priority": "high",
    }


def _appends(picks: Picks) -> list[dict[str, Any]]:
    return [append_to(ref) for ref in picks.refs(BATCH)]


ROWS = (
    Row("floor_get", 300, lambda picks: Call(f"/floor/{picks.number()}/")),
    Row("rest_get", 300, lambda picks: Call(f"/api/v1/tasks/{picks.ref()}/")),
    Row("mcp_get", 300, lambda picks: tool("backlog_get", id=picks.ref())),
    Row("get_resource", 1000, lambda picks: tool("get_resource", uri=uri_of(picks.ref()))),
    Row("resources_read", 1000, lambda picks: mcp("resources/read", uri=uri_of(picks.ref()))),
    Row(
        "rest_resource",
        150,
        lambda picks: Call(f"/api/v1/resource/?uri={quote(uri_of(picks.ref()), safe='')}"),
    ),
    Row("rest_list50", 150, lambda picks: Call("/api/v1/tasks/?limit=50")),
    Row("rest_list50_open", 150, lambda picks: Call("/api/v1/tasks/?limit=50&status=open")),
    Row("mcp_list20", 150, lambda picks: tool("backlog_list", limit=20)),
    Row("mcp_search", 100, lambda picks: tool("backlog_search", query=picks.one_of(QUERIES))),
    Row(
        "mcp_search_filtered",
        100,
        lambda picks: tool("backlog_search", query=picks.one_of(QUERIES), **FILTERS),
    ),
    Row("mcp_context", 50, lambda picks: tool("backlog_context", id=picks.ref())),
    Row("rest_append", 100, lambda picks: Call("/api/v1/write/", append_to(picks.ref()))),
    Row("mcp_append", 200, lambda picks: tool("write_resource", **append_to(picks.ref()))),
    Row("rest_create", 100, lambda picks: Call("/api/v1/tasks/", _new_task(picks))),
    Row("mcp_create", 200, lambda picks: tool("backlog_create", **_new_task(picks))),
    Row(
        "rest_batch100",
        10,
        lambda picks: Call("/api/v1/write_batch/", {"operations": _appends(picks)}),
    ),
    Row("mcp_batch100", 30, lambda picks: tool("write_resource_batch", operations=_appends(picks))),
)


# Compared with each other, so measured together.
_TOGETHER = ("get_resource", "resources_read")


def groups() -> list[list[Row]]:
    first, *others = (row for row in ROWS if row.name in _TOGETHER)
    return [[row, *others] if row is first else [row] for row in ROWS if row not in others]


def row_named(name: str) -> Row:
    return next(row for row in ROWS if row.name == name)
