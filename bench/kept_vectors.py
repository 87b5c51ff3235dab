"""Cache vectors of passages in a file, so that a second database or run need not embed the same
texts again.
"""

import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from search_app.semantic import minilm


def keep_vectors(folder: Path) -> None:
    """Cache the vectors from now on in this process."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = _Kept(folder / f"{minilm.NAME}.sqlite3")
    minilm.embed = kept.embed


class _Kept:
    def __init__(self, path: Path) -> None:
        self._embed = minilm.embed
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (digest BLOB PRIMARY KEY, vector BLOB)")

    def embed(self, texts: Sequence[str]) -> minilm.Floats:
        missing = [text for text in texts if self._find(text) is None]
        for text, vector in zip(missing, self._embed(missing), strict=True):
            self.put(text, vector)
        rows = [np.frombuffer(self._find(text) or b"", np.float32) for text in texts]
        return np.array(rows, np.float32).reshape(-1, minilm.DIMENSIONS)

    def put(self, text: str, vector: minilm.Floats) -> None:
        row = (_digest(text), vector.astype(np.float32).tobytes())
        self._file.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", row)

    def _find(self, text: str) -> bytes | None:
        row = self._file.execute(
            "SELECT vector FROM kept WHERE digest = ?", [_digest(text)]
        ).fetchone()
        return row[0] if row else None


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
