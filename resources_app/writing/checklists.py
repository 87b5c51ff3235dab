"""The check boxes of a description: ticked by their line, refused when the line has become another."""

import re

from resources_app.errors import Conflict
from resources_app.identity.roles import Actor
from resources_app.reading.by_address import read
from resources_app.writing import write_path

# As much of a line as tells it from its neighbours.
LABEL = 100
_BOX_LINE = re.compile(r"(\s*(?:>\s*)*(?:[-*+]|\d{1,9}[.)])\s+\[)([ xX])(\]\s)(.*)", re.DOTALL)


def tick(actor: Actor, item_uri: str, line: int, label: str, *, checked: bool) -> None:
    """`label` is what the reader saw beside the box: whoever edits above it meanwhile does not make us tick another box."""
    uri = f"{item_uri}/description"
    reading = read(actor, uri)
    lines = str(reading.contents).split("\n")
    found = _BOX_LINE.fullmatch(lines[line]) if 0 <= line < len(lines) else None
    if found is None or found[4].strip()[:LABEL] != label.strip():
        raise Conflict("The list has changed since you saw it.", suggestion="Look at it again, then tick.", line=line)
    lines[line] = f"{found[1]}{'x' if checked else ' '}{found[3]}{found[4]}"
    write_path.write(actor, uri, {"type": "set", "value": "\n".join(lines)}, reading.etag)
