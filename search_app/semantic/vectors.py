"""Pack vectors for storage: a byte for each number, and the signs as bits."""

import numpy as np

from search_app.semantic.minilm import DIMENSIONS, Floats

CODE_WORDS = DIMENSIONS // 64


def packed(vector: Floats) -> tuple[bytes, bytes]:
    """Pack a vector. Only its direction matters; the stored length is not one."""
    return np.round(vector * (127 / np.abs(vector).max())).astype(np.int8).tobytes(), code_of(
        vector
    )


def code_of(vector: Floats) -> bytes:
    return np.packbits(vector > 0).tobytes()


def cosines(rows: list[bytes], query: Floats) -> Floats:
    vectors = np.frombuffer(b"".join(rows), np.int8).reshape(-1, DIMENSIONS).astype(np.float32)
    return vectors @ query / np.linalg.norm(vectors, axis=1)
