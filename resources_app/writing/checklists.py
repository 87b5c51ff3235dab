"""Tick the checkboxes of a description by line. Rejected if the line has changed."""

import re

from resources_app.errors import Conflict
from resources_app.identity.roles import Actor
from resources_app.reading.by_address import read
from resources_app.writing import write_path

# Enough of a line to distinguish it from its neighbours.
LABEL = 100
_BOX_LINE = re.compile(r"(\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+\[)([ xX])(\]\s)(.*)", re.DOTALL)


def tick(actor: Actor, item_uri: str, line: int, label: str, *, checked: bool) -> None:
    """Tick or clear a checkbox.

    `label` is the text the user saw beside the box, so that a concurrent edit above it does not
    make us tick another box.
    """
    uri = f"{item_uri}/description"
    reading = read(actor, uri)
    lines = str(reading.contents).split("\n")
    found = _BOX_LINE.fullmatch(lines[line]) if 0 <= line < len(lines) else None
    if found is None or found[4].strip()[:LABEL] != label.strip():
        raise Conflict(
            "The list has changed since you saw it.",
            suggestion="Look at it again, then tick.",
            line=line,
        )
    lines[line] = f"{found[1]}{'x' if checked else ' '}{found[3]}{found[4]}"
    write_path.write(actor, uri, {"type": "set", "value": "\n".join(lines)}, reading.etag)
