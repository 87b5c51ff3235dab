"""Provide templates for new tasks of the most common kinds."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Template:
    name: str
    description: str
    title: str
    body: str
    labels: tuple[str, ...]
    priority: str = "medium"

    def task(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "description": self.body,
            "labels": list(self.labels),
            "priority": self.priority,
        }


_ALL = (
    Template(
        "bug",
        "Something does not work as it should",
        "Bug: ",
        "## What happens\n\n## What should happen\n\n## How to see it\n\n1. \n\n## Done when\n\n- ["
        " ] tested\n",
        ("bug",),
        "high",
    ),
    Template(
        "feature",
        "Something new for the people who use it",
        "",
        "## Why\n\n## What\n\n## Done when\n\n- [ ] \n\n## Not part of this\n",
        ("feature",),
    ),
    Template(
        "spike",
        "A question to answer within a fixed time",
        "Spike: ",
        "## Question\n\n## Time box\n\n## Findings\n\n## Decision\n",
        ("spike",),
    ),
    Template(
        "chore",
        "Upkeep nobody outside will notice",
        "",
        "## What\n\n## Why now\n\n## Done when\n\n- [ ] \n",
        ("chore",),
        "low",
    ),
    Template(
        "incident",
        "What went wrong, and what is done about it",
        "Incident: ",
        "## Impact\n\n## Timeline\n\n## Cause\n\n## Actions\n\n- [ ] \n",
        ("incident",),
        "urgent",
    ),
)
TEMPLATES = {template.name: template for template in _ALL}
