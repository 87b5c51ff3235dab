"""Derive the folder tree from the parents: depths, hidden folders and unreachable ones."""

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from resources_app.models import IBConnection, IBFolder

MAX_DEPTH = 2_000
CHUNK = 500


class Node(NamedTuple):
    pk: int
    ib_id: str
    parent_ib_id: str
    parent_id: int | None
    depth: int
    hidden: bool
    is_gone: bool


@dataclass
class Findings:
    """Hold the ids of folders whose parent is unknown, that are their own ancestors, or that are
    too deep.
    """

    orphans: list[str] = field(default_factory=list)
    cycles: list[str] = field(default_factory=list)
    too_deep: list[str] = field(default_factory=list)

    def problems(self) -> list[tuple[str, str]]:
        return [
            *((ib_id, "its parent is unknown") for ib_id in self.orphans),
            *((ib_id, "it is its own ancestor") for ib_id in self.cycles),
            *((ib_id, f"it lies deeper than {MAX_DEPTH} folders") for ib_id in self.too_deep),
        ]


def settle(connection: IBConnection) -> Findings:
    """Update the tree in the transaction that changed the folders.

    Unreachable subtrees are hidden, never deleted.
    """
    nodes = _nodes(connection)
    placed, findings = place(nodes)
    by_id = {node.ib_id: node.pk for node in nodes}
    moved: list[IBFolder] = []
    sunk: dict[tuple[int, bool], list[int]] = {}
    for node in nodes:
        depth, hidden = placed.get(node.ib_id, (0, True))
        parent = by_id.get(node.parent_ib_id)
        if node.parent_id != parent:
            moved.append(IBFolder(pk=node.pk, depth=depth, hidden=hidden, parent_id=parent))
        elif (node.depth, node.hidden) != (depth, hidden):
            sunk.setdefault((depth, hidden), []).append(node.pk)
    IBFolder.objects.bulk_update(moved, ["depth", "hidden", "parent"], batch_size=CHUNK)
    _sink(sunk)
    return findings


def _sink(folders: dict[tuple[int, bool], list[int]]) -> None:
    """Update folders grouped by depth: after the first run, every folder is affected."""
    for (depth, hidden), pks in folders.items():
        for start in range(0, len(pks), CHUNK):
            rows = IBFolder.objects.filter(pk__in=pks[start : start + CHUNK])
            rows.update(depth=depth, hidden=hidden)


def place(nodes: list[Node]) -> tuple[dict[str, tuple[int, bool]], Findings]:
    """Return depth and hidden flag of every folder below a root, and findings for the rest.

    Pure.
    """
    below: dict[str, list[Node]] = {}
    for node in nodes:
        below.setdefault(node.parent_ib_id, []).append(node)
    findings, placed = Findings(), {}
    queue = deque((node, 0, False) for node in below.get("", ()))
    while queue:
        node, depth, hidden_above = queue.popleft()
        if depth > MAX_DEPTH:
            findings.too_deep.append(node.ib_id)
            continue
        placed[node.ib_id] = (depth, hidden_above or node.is_gone)
        queue.extend(
            (child, depth + 1, placed[node.ib_id][1]) for child in below.get(node.ib_id, ())
        )
    _explain([node for node in nodes if node.ib_id not in placed], findings)
    return placed, findings


def _explain(lost: list[Node], findings: Findings) -> None:
    """Report only the folder at fault, not its descendants."""
    parents = {node.ib_id: node.parent_ib_id for node in lost}
    for node in lost:
        if node.parent_ib_id not in parents:
            if node.ib_id not in findings.too_deep:
                findings.orphans.append(node.ib_id)
        elif _is_own_ancestor(node.ib_id, parents):
            findings.cycles.append(node.ib_id)


def _is_own_ancestor(ib_id: str, parents: dict[str, str]) -> bool:
    seen, at = set(), parents[ib_id]
    while at in parents and at not in seen:
        if at == ib_id:
            return True
        seen.add(at)
        at = parents[at]
    return False


def _nodes(connection: IBConnection) -> list[Node]:
    columns = (
        "pk",
        "ib_id",
        "parent_ib_id",
        "parent_id",
        "depth",
        "hidden",
        "missing_since",
        "tombstoned_at",
    )
    rows = IBFolder.objects.filter(connection=connection).values_list(*columns)
    return [Node._make((*row[:6], bool(row[6] or row[7]))) for row in rows]
