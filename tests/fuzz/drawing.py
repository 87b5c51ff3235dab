"""Draw addresses and operations by the hundred thousand: valid ones, slightly mutated.

Hypothesis would take longer to generate them than the server to answer.
"""

import random
from collections.abc import Sequence
from typing import Any

from resources_app.editing.operations import ALLOWED, ARGUMENTS, TEXT_OPERATIONS
from resources_app.fields.declarations import FIELDS
from resources_app.querying.conditions import FILTERS
from resources_app.reading.registry import REGISTRY

PATTERNS = [entry.pattern for entry in REGISTRY]
REFS = ["TASK-9999", "TASK-00001", "task-0001", "TASK-99999999999999999999"]
REFS += ["TASK-0001", "TASK-0002", "EPIC-0001"] * 4
FIELD_NAMES = list(FIELDS["task"])
# Writable targets and their operations.
TARGETS = [
    (f"mcp://backlog/tasks/{ref}/{field.name}", field.operations)
    for ref in ("TASK-0001", "TASK-0002")
    for field in FIELDS["task"].values()
    if field.writable
]
TARGETS += [
    ("mcp://backlog/tasks/TASK-0001", ALLOWED["object"]),
    ("mcp://backlog/epics/EPIC-0001", ALLOWED["object"]),
] * 4
TARGETS += [("mcp://backlog/tasks/TASK-0001/description", (*TEXT_OPERATIONS, "restore"))] * 6
TARGETS += [("mcp://backlog/resources/docs/a.md", (*TEXT_OPERATIONS, "restore"))] * 3
VARIABLES = {
    "{id}": REFS,
    "{field}": [*FIELD_NAMES, "file", "metadata", "schema", "versions", "comments"],
    "{index}": ["0", "1", "-1", "00", "9" * 30, "versions", "½", "٣"],
    "{path}": ["docs/a.md", "docs", "docs/", "../etc/passwd", "a" * 300, "docs/a.md/b"],
    "{number}": ["1", "0", "-1", "9" * 25, "1.0", "x"],
    "{clientid}": ["X", "demo", "a" * 250],
    "{template}": ["bug", "feature", "nope"],
}
PARAMETERS = [
    *FILTERS,
    "filter",
    "ready",
    "search",
    "limit",
    "offset",
    "cursor",
    "sort",
    "order",
    "aggregate",
]
PARAMETERS += ["group_by", "version", "since", "type", "item", "max_tokens", "x"]
WORDS = [
    *(
        "open",
        "done",
        "high",
        "true",
        "count",
        "status",
        "asc",
        "1",
        "0",
        "-1",
        "200",
        "201",
        "1e9",
        "9" * 40,
        "",
        "NaN",
    ),
    *(
        "2026-01-01",
        "0000-00-00",
        "9999-12-31T23:59:59.999999+14:00",
        "2026-02-30",
        "alice",
        "nobody",
        "due_date",
    ),
    *(
        "status:open",
        'title~"auth"',
        'title~"',
        "created_at>2026-01-01",
        "priority>=high,,",
        "x!=1",
        "label:,label~",
    ),
    *(
        "bnVsbA==",
        "eyJhIjoxfQ",
        "1.2.3",
        "W10=",
        "' OR 1=1 --",
        "%",
        "_",
        "\\",
        "*",
        '"',
        "(",
        "[a-",
    ),
]
ODD = [
    *(
        "\x00",
        "\n",
        "\x7f",
        "\u202e",
        "\ufeff",
        "\U0001f600",
        "é",
        "e\u0301",
        "İ",
        "ß",
        "Ω",
        "漢",
        "\ud800",
        "\uffff",
    ),
    *(
        "/",
        "//",
        "..",
        ".",
        "%2e%2e",
        "%2F",
        "%00",
        "%",
        "%zz",
        "%ff",
        "%f0%9f%98%80",
        "?",
        "&",
        "=",
        "#",
        "@v1",
        "@v0",
    ),
    *(
        "@v99999999999",
        "?version=1",
        "?version=-1",
        "\\",
        ":",
        "://",
        "@",
        " ",
        "+",
        ";",
        "<script>",
        "{id}",
        "${x}",
    ),
]
NUMBERS = [0, 1, -1, 2, 500, 2**31, 2**63 - 1, -(2**63), 2**63, 10**30, 0.5, 1e308, -0.0]
LINES = [
    "one",
    "two\n",
    "one\ntwo\nthree\n",
    "three",
    "\r\n",
    "",
    " ",
    "# A",
    "\u2028",
    "x" * 5000,
    "$1\\1",
    "---\n",
]


class Draw:
    """Draw values; the same seed draws the same ones."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.pick = self._random.choice

    def address(self) -> str:
        made = self.pick([self._of_pattern, self._of_pattern, self._of_pattern, self._of_parts])()
        if self.chance(0.2):
            made += "?" + "&".join(
                f"{self.pick(PARAMETERS)}={self._word()}" for _ in range(self.pick([1, 1, 2, 3]))
            )
        return self.bent(made) if self.chance(0.15) else made

    def write(self) -> dict[str, Any]:
        uri, fitting = self.pick(TARGETS)
        if self.chance(0.3):
            uri = self.address()
        if self.chance(0.2):
            fitting = (*ARGUMENTS, "fly")
        return {"uri": uri, "operation": self._operation(fitting), "etag": self._etag()}

    def _operation(self, fitting: Sequence[str]) -> Any:
        if self.chance(0.03):
            return self.value(3)
        kind = self.pick(fitting) if self.chance(0.97) else self.value(1)
        required, optional = ARGUMENTS.get(kind, ((), ())) if isinstance(kind, str) else ((), ())
        names = [name for name in (*required, *optional) if self.chance(0.93)]
        if self.chance(0.05):
            names.append(self.pick(["x", "old_str", "value", "index", "type", "field"]))
        return {"type": kind} | {name: self._argument(name) for name in names if name != "type"}

    def _etag(self) -> Any:
        return (
            None
            if self.chance(0.85)
            else self.pick(["*", '""', '"x"', 'W/"1"', "x" * 300, 7, [], self._word()])
        )

    def form_value(self) -> str:
        """Return a value as a browser could send it, without unpaired surrogates."""
        made = self.pick(
            [
                self._word,
                self._text,
                self.address,
                lambda: self.pick(["²", "½", "٣", "-1", "9" * 30, *REFS]),
            ]
        )()
        return made.encode(errors="replace").decode()

    def value(self, depth: int) -> Any:
        if depth and self.chance(0.4):
            inner = [self.value(depth - 1) for _ in range(self.pick([0, 1, 2, 4]))]
            return inner if self.chance(0.5) else {self._key(): one for one in inner}
        return self.pick(
            [None, True, False, self.pick(NUMBERS), self._text(), self.pick(REFS), self._word()]
        )

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def _of_pattern(self) -> str:
        address = self.pick(PATTERNS)
        for variable, words in VARIABLES.items():
            while variable in address:
                address = address.replace(
                    variable, self.pick(words) if self.chance(0.95) else self._text(), 1
                )
        return address

    def _of_parts(self) -> str:
        scheme = self.pick(
            [
                "mcp://backlog/",
                "mcp://backlog/tasks/",
                "file:///",
                "auth://",
                "ib://X/",
                "MCP://",
                "",
            ]
        )
        words = [
            *REFS,
            *FIELD_NAMES,
            "tasks",
            "epics",
            "archive",
            "resources",
            "docs",
            "a.md",
            "0",
            *ODD,
        ]
        return scheme + "/".join(self.pick(words) for _ in range(self.pick([0, 1, 2, 3, 5, 45])))

    def bent(self, text: str, start: str = "") -> str:
        place = self._random.randrange(len(text) + 1)
        return (
            start + text[:place] + self.pick([*ODD, ""]) + text[place + self.pick([0, 0, 1, 4]) :]
        )

    def _argument(self, name: str) -> Any:
        if self.chance(0.1):
            return self.value(2)
        if name in ("index", "line", "version"):
            return self.pick([0, 1, 2, 3, *NUMBERS, "1"])
        if name == "field":
            return self.pick([*FIELD_NAMES, self._text()])
        if name == "replace_all":
            return self.chance(0.5)
        return self._fitting_value() if name == "value" else self._text()

    def _fitting_value(self) -> Any:
        words = [
            "open",
            "done",
            "high",
            "low",
            "alice",
            "EPIC-0001",
            "TASK-0001",
            "2026-05-01",
            None,
            "one",
            self._text(),
        ]
        if self.chance(0.5):
            return self.pick(words)
        if self.chance(0.4):
            return [self.pick(words) for _ in range(self.pick([0, 1, 2, 5]))]
        if self.chance(0.5):
            return {self.pick(FIELD_NAMES): self.pick(words) for _ in range(self.pick([1, 2]))}
        return self.pick(
            [{"url": "https://x.y", "title": "X"}, [{"url": self._text()}], self.value(3)]
        )

    def _key(self) -> str:
        return self.pick([*FIELD_NAMES, "url", "title", self._text()])

    def _word(self) -> str:
        return self.pick(WORDS) if self.chance(0.85) else self._text()

    def _text(self) -> str:
        return (
            self.pick(LINES) if self.chance(0.6) else self.bent(self.pick(WORDS) + self.pick(ODD))
        )
