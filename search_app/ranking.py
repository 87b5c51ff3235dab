"""Score candidates: BM25 with a heavier title, joined by semantic similarity, then small bonuses
that settle near-ties.

Scores are the same for each database. A score is absolute: it does not depend on the other
candidates, so pages, filters and the size of the window do not change it.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from search_app.backends.base import Candidate
from search_app.index.statistics import Statistics
from search_app.terms import Term

K1, B = 1.2, 0.75
TITLE_WEIGHT = 5.0
# Weight of a prefix match of an unfinished word.
PREFIX_WEIGHT = 0.5
# Weight of a corrected word, relative to the typed word.
CORRECTED_WEIGHT = 0.5
# Maximum share of the parts of an identifier such as 9f86d081, relative to the whole, if the whole
# is known.
PARTS_WEIGHT = 0.25
TITLE_COVERAGE, COORDINATION, RECENCY = 0.2, 0.15, 0.01
# Weight of semantic similarity in the sum, if there is any; words get the rest.
MEANING = 0.5
# Where similarity becomes meaningful, and the range that is scaled to 1.
UNRELATED, SIMILARITY_RANGE = 0.1, 0.6
RECENCY_HALF_LIFE_DAYS = 30.0
EXACT_ID, EXACT_TITLE = 10.0, 5.0
_KIND_ORDER = {
    kind: position
    for position, kind in enumerate(("epic", "task", "resource", "ib_folder", "ib_resource"))
}


class Parts(NamedTuple):
    """Explain a score, which is the sum of all parts but the first."""

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
    # False if it only has corrected words or a similar meaning.
    has_typed_word: bool

    @property
    def is_semantic(self) -> bool:
        return not self.parts.bm25


class _Lexical(NamedTuple):
    bm25: float
    in_title: float
    present: float
    has_typed_word: bool


class _Pattern(NamedTuple):
    """Hold what is counted for one term: whole tokens, and prefixes where they may count."""

    # Weight of a match, and its weight if the word matched as typed.
    weight: float
    most: float
    is_typed: bool
    exact: tuple[str, ...]
    begun_in_title: tuple[str, ...]
    begun_in_body: tuple[str, ...]


def rank(
    candidates: Sequence[Candidate],
    terms: Sequence[Term],
    statistics: Statistics,
    *,
    title_key: int,
    exact_ids: Iterable[tuple[str, int]],
    meaning: Mapping[int, float] | None = None,
) -> list[Ranked]:
    """Rank the candidates, best first. Ties put lexical hits first, then sort by id.

    `meaning` has a similarity for each candidate with vectors.
    """
    if not candidates:
        return []
    patterns = _patterns(terms, statistics.documents)
    whole = sum(pattern.most for pattern in patterns)
    lexical = [
        _lexical(candidate, patterns, whole, statistics.average_length) for candidate in candidates
    ]
    pinned = set(exact_ids)
    share = MEANING * _understood_share(terms, patterns, whole) if meaning else 0.0
    scaled = _scaled(meaning, candidates, lexical) if meaning else {}
    today = _end_of_today()
    ranked = []
    for candidate, (bm25, in_title, present, has_typed_word) in zip(
        candidates, lexical, strict=True
    ):
        # In the order of Parts; keyword arguments would take twice as long for each of hundreds.
        parts = Parts(
            bm25,
            (1 - share) * bm25 / ((K1 + 1) * whole),
            share * scaled.get(candidate.id, 0.0),
            TITLE_COVERAGE * in_title,
            COORDINATION * present,
            RECENCY * 0.5 ** (max(today - candidate.changed, 0.0) / RECENCY_HALF_LIFE_DAYS),
            EXACT_ID if (candidate.kind, candidate.object_id) in pinned else 0.0,
            EXACT_TITLE if candidate.title_key == title_key else 0.0,
        )
        ranked.append(Ranked(candidate, round(sum(parts[1:]), 6), parts, has_typed_word))
    return sorted(ranked, key=_order)


def _understood_share(terms: Sequence[Term], patterns: Sequence[_Pattern], whole: float) -> float:
    """Return the share of the query the model can read, by weight.

    It cannot read an identifier such as 9f86d081.
    """
    wholes = {term.part_of for term in terms if term.part_of}
    opaque = (
        pattern.most
        for term, pattern in zip(terms, patterns, strict=True)
        if term.part_of or term.word in wholes or term.corrected_from in wholes
    )
    return 1.0 - sum(opaque) / whole


def _scaled(
    similarities: Mapping[int, float], candidates: Sequence[Candidate], lexical: Sequence[_Lexical]
) -> dict[int, float]:
    """Scale the similarities. A candidate without a vector keeps its lexical rank.

    It gets the same share of the best similarity as it has of the best text score. Otherwise search
    would be worse during embedding than without a model.
    """
    scaled = {
        number: max((value - UNRELATED) / SIMILARITY_RANGE, 0.0)
        for number, value in similarities.items()
    }
    best_meaning, best_text = max(scaled.values()), max(one.bm25 for one in lexical) or 1.0
    for candidate, one in zip(candidates, lexical, strict=True):
        scaled.setdefault(candidate.id, best_meaning * one.bm25 / best_text)
    return scaled


def _end_of_today() -> float:
    """Return the end of today in days since 1970.

    Equal all day, so that equal searches have equal scores.
    """
    return math.floor(time.time() / 86400) + 1.0


def inverse_frequency(frequency: int, documents: int) -> float:
    """Return the inverse document frequency. Positive even for a word that most documents have."""
    return math.log(1 + max(documents - frequency + 0.5, 0.5) / (frequency + 0.5))


def _order(ranked: Ranked) -> tuple[float, bool, int, int]:
    return (
        -ranked.score,
        ranked.is_semantic,
        _KIND_ORDER[ranked.candidate.kind],
        ranked.candidate.object_id,
    )


def _patterns(terms: Sequence[Term], documents: int) -> list[_Pattern]:
    weights = [inverse_frequency(term.frequency, documents) for term in terms]
    for whole in {term.part_of for term in terms if term.part_of}:
        _share_out(weights, terms, whole)
    return [_pattern(term, weight) for term, weight in zip(terms, weights, strict=True)]


def _share_out(weights: list[float], terms: Sequence[Term], whole: str) -> None:
    """Weigh an identifier against its parts. Near twins share most parts, and the exact one must
    rank above them.

    If no document has the whole, only the parts count.
    """
    own = next(
        (at for at, term in enumerate(terms) if whole in {term.word, term.corrected_from}), None
    )
    parts = [at for at, term in enumerate(terms) if term.part_of == whole]
    if own is None:
        return
    if not terms[own].frequency:
        weights[own] = 0.0
        return
    factor = min(PARTS_WEIGHT * weights[own] / sum(weights[at] for at in parts), 1.0)
    for at in parts:
        weights[at] *= factor


def _pattern(term: Term, most: float) -> _Pattern:
    prefixes = [token for token in term.clause if token.is_prefix]
    return _Pattern(
        most * CORRECTED_WEIGHT if term.corrected_from else most,
        most,
        not term.corrected_from,
        tuple(f" {token.text} " for token in term.clause if not token.is_prefix),
        tuple(f" {token.text}" for token in prefixes),
        tuple(f" {token.text}" for token in prefixes if not token.in_title),
    )


def _lexical(
    candidate: Candidate, patterns: Sequence[_Pattern], whole: float, average_length: float
) -> _Lexical:
    norm = K1 * (1 - B + B * candidate.length / average_length)
    title, body = candidate.title, candidate.body
    total = in_title = present = 0.0
    has_typed_word = False
    for weight, _, is_typed, exact, begun_in_title, begun_in_body in patterns:
        titled = _occurrences(title, exact, begun_in_title)
        count = TITLE_WEIGHT * titled + _occurrences(body, exact, begun_in_body)
        if count:
            total += weight * count * (K1 + 1) / (count + norm)
            present += weight
            in_title += weight if titled else 0.0
            has_typed_word = has_typed_word or is_typed
    return _Lexical(total, in_title / whole, present / whole, has_typed_word)


def _occurrences(text: str, exact: Sequence[str], begun: Sequence[str]) -> float:
    whole = text.count(exact[0]) if len(exact) == 1 else sum(map(text.count, exact))
    if not begun:
        return whole
    return whole + PREFIX_WEIGHT * max(sum(map(text.count, begun)) - whole, 0)
