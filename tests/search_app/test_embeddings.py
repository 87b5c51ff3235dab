"""Test the embedding model: its tokens, and vectors that reflect similarity."""

import numpy as np

from search_app.semantic import minilm, vectors
from search_app.semantic.wordpiece import encode


def test_a_text_becomes_the_pieces_that_the_model_was_trained_on() -> None:
    text = "Hello, World! unaffable 数据库 Café snake_case don't\tЗадача\x19"
    expected = [
        7592,
        1010,
        2088,
        999,
        14477,
        20961,
        3468,
        100,
        100,
        100,
        7668,
        7488,
        1035,
        2553,
        2123,
        1005,
        1056,
    ]
    assert encode(text, 256) == [101, *expected, 1187, 10260, 29742, 10260, 29752, 10260, 102]


def test_a_long_text_is_cut_and_still_ends() -> None:
    assert encode("one two three four", 4) == [101, 2028, 2048, 102]


def test_vectors_are_those_of_the_published_model() -> None:
    """Compare the first numbers with onnxruntime's, from the same file."""
    [vector] = minilm.embed(["The car does not start"])
    assert np.allclose(vector[:4], REFERENCE, atol=2e-3)


def test_what_means_the_same_is_nearer_than_what_shares_a_word() -> None:
    car, automobile, start = minilm.embed(
        ["The car does not start", "Automobile ignition fails", "Start of the year"]
    )
    assert car @ automobile > car @ start + 0.2


def test_texts_embedded_together_are_as_if_alone() -> None:
    texts = ["a", "two words", "the third one is longer than the others"]
    assert np.allclose(
        minilm.embed(texts), np.vstack([minilm.embed([text]) for text in texts]), atol=1e-5
    )


def test_a_stored_vector_keeps_its_direction() -> None:
    [vector] = minilm.embed(["An expired token signs the user out"])
    stored, code = vectors.packed(vector)
    assert (len(stored), len(code)) == (384, 48)
    assert vectors.cosines([stored], vector)[0] > 0.999


REFERENCE = [-0.0094, -0.0031, -0.0242, -0.0379]
