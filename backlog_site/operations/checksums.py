"""The checksum of a backup: the last line carries the SHA-256 of all lines before it.

It finds damage and edits before anything is restored. It is no signature: keep backups where only
admins write.
"""

import gzip
import hashlib
import json
from pathlib import Path
from typing import IO, Any

ALGORITHM = "sha256"


class SummedText:
    """A text stream that adds up what is written to it."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._sum = hashlib.sha256()

    def write(self, text: str) -> int:
        self._sum.update(text.encode())
        return self._out.write(text)

    def hexdigest(self) -> str:
        return self._sum.hexdigest()


def verify(source: Path) -> None:
    """Raises ValueError when the lines are not those that were written.

    Backups without a checksum pass.
    """
    summed, last = hashlib.sha256(), b""
    with gzip.open(source, "rb") as lines:
        first = last = lines.readline()
        for line in lines:
            summed.update(last)
            last = line
    end = _parsed(last)
    found = end.get(ALGORITHM)
    if found is None and _parsed(first).get("checksum") != ALGORITHM:
        return
    if found != summed.hexdigest():
        raise ValueError("Its checksum does not match its contents.")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
