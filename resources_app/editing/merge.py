"""Merge two edits of the same text line by line, like diff3. Pure."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

MINE, MIDDLE, THEIRS = "<<<<<<< yours", "=======", ">>>>>>> theirs"

Lines = list[str]


@dataclass(frozen=True)
class Merged:
    """Hold a merged text.

    `conflicts` counts the places where both sides changed the same lines. There the text holds both
    versions between conflict markers.
    """

    text: str
    conflicts: int


def merge_texts(base: str, mine: str, theirs: str) -> Merged:
    original, ours, others = (text.split("\n") for text in (base, mine, theirs))
    merged: Lines = []
    conflicts = 0
    at_base = at_ours = at_others = 0
    for base_start, our_start, their_start, length in _shared(original, ours, others):
        lines, clash = _between(
            original[at_base:base_start], ours[at_ours:our_start], others[at_others:their_start]
        )
        merged += lines + original[base_start : base_start + length]
        conflicts += clash
        at_base, at_ours, at_others = base_start + length, our_start + length, their_start + length
    return Merged("\n".join(merged), conflicts)


def _between(base: Lines, mine: Lines, theirs: Lines) -> tuple[Lines, int]:
    """Merge the lines between two stretches that all three texts share."""
    if mine == theirs or theirs == base:
        return mine, 0
    if mine == base:
        return theirs, 0
    return [MINE, *mine, MIDDLE, *theirs, THEIRS], 1


def _shared(base: Lines, mine: Lines, theirs: Lines) -> Iterator[tuple[int, int, int, int]]:
    """Yield the stretches of the base that both edits kept, as start in each of the three texts and
    length.
    """
    ours, others = _blocks(base, mine), _blocks(base, theirs)
    while ours and others:
        our, other = ours[0], others[0]
        start, end = max(our.a, other.a), min(our.a + our.size, other.a + other.size)
        if start < end:
            yield start, our.b + start - our.a, other.b + start - other.a, end - start
        (ours if our.a + our.size < other.a + other.size else others).pop(0)
    yield len(base), len(mine), len(theirs), 0


def _blocks(base: Lines, edited: Lines) -> list[difflib.Match]:
    return difflib.SequenceMatcher(None, base, edited, autojunk=False).get_matching_blocks()[:-1]
