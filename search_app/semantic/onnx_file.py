"""Read the stored tensors of an ONNX file, and nothing else of it."""

from collections.abc import Iterator
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Field numbers in onnx.proto.
_MODEL_GRAPH, _GRAPH_TENSOR = 7, 5
_TENSOR_DIMENSIONS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 8, 9
_TYPES = {1: np.float32, 3: np.int8}
_VARINT, _BYTES = 0, 2


def read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """Return the tensors of the number types that weights use."""
    found = {}
    with path.open("rb") as file:
        # Mapped, so that all processes share the pages, and unused ones are never read.
        whole = memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))
    for graph in _all(whole, _MODEL_GRAPH):
        for tensor in _all(graph, _GRAPH_TENSOR):
            fields = list(_fields(tensor))
            kind = next(value for number, value in fields if number == _TENSOR_TYPE)
            name = next(bytes(value).decode() for number, value in fields if number == _TENSOR_NAME)
            if kind in _TYPES:
                found[name] = _array(fields, _TYPES[kind])
    return found


def _array(fields: list[tuple[int, Any]], kind: Any) -> NDArray[Any]:
    raw = next(value for number, value in fields if number == _TENSOR_RAW)
    return np.frombuffer(raw, kind).reshape(
        [value for number, value in fields if number == _TENSOR_DIMENSIONS]
    )


def _all(message: memoryview, wanted: int) -> Iterator[memoryview]:
    return (value for number, value in _fields(message) if number == wanted)


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, at = _varint(message, at)
        value: Any = number
        if tag & 7 == _BYTES:
            value, at = message[at : at + number], at + number
        elif tag & 7 != _VARINT:
            raise ValueError(f"Field {tag >> 3} is of a kind that the file should not have.")
        yield tag >> 3, value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
