"""The score of a candidate: BM25 with a heavier title, joined by meaning where there are vectors, then small bonuses that
settle near-ties. The same for each database."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from search_app.backends.base import Candidate
from search_app.statistics import Statistics
from search_app.terms import Term

K1, B = 1.2, 0.75
TITLE_WEIGHT = 5.0
# What a word counts that only begins like the unfinished one.
PREFIX_WEIGHT = 0.5
TITLE_COVERAGE, COORDINATION, RECENCY = 0.2, 0.15, 0.01
# What meaning counts in the sum, when there is any; words count the rest.
MEANING = 0.5
RECENCY_HALF_LIFE_DAYS = 30.0
EXACT_ID, EXACT_TITLE = 10.0, 5.0
_KIND_ORDER = {kind: position for position, kind in enumerate(("epic", "task", "resource", "ib_folder", "ib_resource"))}


class Parts(NamedTuple):
    """Why a candidate stands where it stands; the score is the sum of all but the first."""

    bm25: float
    text: float
    meaning: float
    title_coverage: float
    coordination: float
    recency: float
    exact_id: float
    exact_title: float


class Ranked(NamedTuple):
    candidate: Candidate
    score: float
    parts: Parts


class _Lexical(NamedTuple):
    bm25: float
    in_title: float
    present: float


def rank(
    candidates: Sequence[Candidate],
    terms: Sequence[Term],
    statistics: Statistics,
    *,
    title_key: int,
    exact_ids: Iterable[tuple[str, int]],
    meaning: Mapping[int, float] | None = None,
) -> list[Ranked]:
    """Best first; equal scores order by id. `meaning` has a similarity for each candidate that has vectors."""
    if not candidates:
        return []
    patterns = [_pattern(term, statistics.documents) for term in terms]
    whole = sum(pattern.weight for pattern in patterns)
    lexical = [_lexical(candidate, patterns, whole, statistics.average_length) for candidate in candidates]
    best = max(one.bm25 for one in lexical) or 1.0
    newest = max(candidate.changed for candidate in candidates)
    pinned = set(exact_ids)
    share = MEANING if meaning else 0.0
    scaled = _scaled(meaning or {})
    ranked = []
    for candidate, (bm25, in_title, present) in zip(candidates, lexical, strict=True):
        # In the order of Parts; by name it would take twice as long, for each of hundreds.
        parts = Parts(
            bm25,
            (1 - share) * bm25 / best,
            share * scaled.get(candidate.id, 0.0),
            TITLE_COVERAGE * in_title,
            COORDINATION * present,
            RECENCY * 0.5 ** ((newest - candidate.changed) / RECENCY_HALF_LIFE_DAYS),
            EXACT_ID if (candidate.kind, candidate.object_id) in pinned else 0.0,
            EXACT_TITLE if candidate.title_key == title_key else 0.0,
        )
        ranked.append(Ranked(candidate, round(sum(parts[1:]), 6), parts))
    return sorted(ranked, key=_order)


def _scaled(similarities: Mapping[int, float]) -> dict[int, float]:
    """From 0 for the least to 1 for the most similar: only then it can be added to what words give."""
    if not similarities:
        return {}
    least, most = min(similarities.values()), max(similarities.values())
    return {number: (value - least) / (most - least or 1.0) for number, value in similarities.items()}


def inverse_frequency(frequency: int, documents: int) -> float:
    """Positive also for a word that most documents have."""
    return math.log(1 + max(documents - frequency + 0.5, 0.5) / (frequency + 0.5))


def _order(ranked: Ranked) -> tuple[float, int, int]:
    return -ranked.score, _KIND_ORDER[ranked.candidate.kind], ranked.candidate.object_id


class _Pattern(NamedTuple):
    """What is counted for one term: whole tokens, and beginnings of tokens where those may count."""

    weight: float
    exact: tuple[str, ...]
    begun_in_title: tuple[str, ...]
    begun_in_body: tuple[str, ...]


def _pattern(term: Term, documents: int) -> _Pattern:
    prefixes = [token for token in term.clause if token.is_prefix]
    return _Pattern(
        inverse_frequency(term.frequency, documents),
        tuple(f" {token.text} " for token in term.clause if not token.is_prefix),
        tuple(f" {token.text}" for token in prefixes),
        tuple(f" {token.text}" for token in prefixes if not token.in_title),
    )


def _lexical(candidate: Candidate, patterns: Sequence[_Pattern], whole: float, average_length: float) -> _Lexical:
    norm = K1 * (1 - B + B * candidate.length / average_length)
    title, body = candidate.title, candidate.body
    total = in_title = present = 0.0
    for weight, exact, begun_in_title, begun_in_body in patterns:
        titled = _occurrences(title, exact, begun_in_title)
        count = TITLE_WEIGHT * titled + _occurrences(body, exact, begun_in_body)
        if count:
            total += weight * count * (K1 + 1) / (count + norm)
            present += weight
            in_title += weight if titled else 0.0
    return _Lexical(total, in_title / whole, present / whole)


def _occurrences(text: str, exact: Sequence[str], begun: Sequence[str]) -> float:
    whole = text.count(exact[0]) if len(exact) == 1 else sum(map(text.count, exact))
    if not begun:
        return whole
    return whole + PREFIX_WEIGHT * max(sum(map(text.count, begun)) - whole, 0)
