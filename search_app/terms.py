"""Turn typed text into search clauses with their frequency, and correct unknown words."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from search_app.backends import backend
from search_app.backends.base import Allowed, Candidate, Clause, Expression, Token
from search_app.index.statistics import LARGE, frequency
from search_app.tokens import AS_WRITTEN, analyse_word, fold, is_cjk, is_ref, stem, words

MAX_TERMS = 32
MIN_PREFIX_IN_TITLE, MIN_PREFIX = 2, 4
MIN_CORRECTED = 4
MAX_CORRECTIONS = 3
SEEN_FOR_CORRECTION = 200

_ALPHABETS = (
    (re.compile("[a-z]+"), "abcdefghijklmnopqrstuvwxyz"),
    (re.compile("[а-яії]+"), "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    (re.compile("[α-ω]+"), "αβγδεζηθικλμνξοπρσςτυφχψω"),
)
# An identifier whose parts mean nothing by themselves.
_MIXED = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
# Searched only when a query has nothing else.
_STOP_WORDS = frozenset(
    "a an and are as at be been but by can do does for from had has have how i if in "  # noqa: SIM905
    "into is it its me my of on or our so such than that the their them then there these they "
    "this those to was we were what when where which who why will with you your".split()
)


@dataclass(frozen=True)
class Term:
    """Represent one word of the query.

    `frequency` counts documents of the whole index, which defines how rare a word is.
    """

    word: str
    clause: Clause
    frequency: int = 0
    corrected_from: str = ""
    # The identifier of mixed letters and digits, such as 9f86d081, of which it is a part.
    part_of: str = ""


def find_terms(slot: str, text: str, visible: Callable[[], Allowed]) -> list[Term]:
    """Return the terms.

    `visible` selects all the caller sees: a word only other users may read counts as unknown.
    """
    counted = [replace(term, frequency=frequency(slot, term.clause)) for term in parse(text)]
    unknown = [
        position for position, term in enumerate(counted) if not _is_known(slot, term, visible)
    ]
    for position in unknown[:MAX_CORRECTIONS]:
        counted[position] = _correct(slot, counted[position], visible) or counted[position]
    return counted


def _is_known(slot: str, term: Term, visible: Callable[[], Allowed]) -> bool:
    """Return whether the caller knows the word.

    A very frequent word is known to every user with read access.
    """
    if not 0 < term.frequency < LARGE:
        return term.frequency > 0
    return backend().count(slot, Expression((term.clause,)), visible()) > 0


@lru_cache(maxsize=1000)
def parse(text: str) -> tuple[Term, ...]:
    """Parse the words without stop words, each once. The last one may be unfinished."""
    found = _without_repeats(words(text))
    unfinished = bool(found) and found[-1][1] == len(text)
    clauses: dict[str, Term] = {}
    for position, (_, _, word) in enumerate(found):
        is_last = unfinished and position == len(found) - 1
        for term in _terms_of(word, is_prefix=is_last):
            clauses.setdefault(term.clause[0].text, term)
    telling = [term for term in clauses.values() if term.word not in _STOP_WORDS]
    return tuple((telling or list(clauses.values()))[:MAX_TERMS])


def _without_repeats(placed: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Drop overlapping pairs.

    Of 数据库, 数据 and 据库 are enough; the 库 that follows them is for texts.
    """
    kept: list[tuple[int, int, str]] = []
    for start, end, word in placed:
        if not kept or end > kept[-1][1]:
            kept.append((start, end, word))
    return kept


def _terms_of(word: str, *, is_prefix: bool) -> Iterator[Term]:
    analysed = analyse_word(word)
    terms = analysed.terms[:1] if is_ref(word) else analysed.terms
    for position, token in enumerate(terms):
        written = fold(word) if len(analysed.terms) == 1 else token
        prefixes = _prefixes(written) if is_prefix and position == 0 else ()
        part_of = terms[0] if position and _MIXED.search(word) else ""
        yield Term(written, (Token(token), *prefixes), part_of=part_of)


def _prefixes(written: str) -> Clause:
    """Return the prefix tokens.

    A short prefix searches only titles: in texts it would match nearly everything.
    """
    whole = is_cjk(written)
    if not written.isalnum() or (not whole and len(written) < MIN_PREFIX_IN_TITLE):
        return ()
    in_title = not whole and len(written) < MIN_PREFIX
    texts = (written, AS_WRITTEN + written)
    return tuple(Token(text, is_prefix=True, in_title=in_title) for text in texts)


def _correct(slot: str, term: Term, visible: Callable[[], Allowed]) -> Term | None:
    """Return the most frequent word at edit distance one, among what the caller may see."""
    slips = {_token_of(word): word for word in _one_slip_away(term.word)}
    tokens = {text: slips[text] for text in sorted(backend().known(slot, slips))} if slips else {}
    if not tokens:
        return None
    expression = Expression((tuple(Token(text) for text in tokens),))
    seen = backend().candidates(slot, expression, visible(), SEEN_FOR_CORRECTION)
    counted = _count_known(seen, tokens)
    if not counted:
        return None
    word = min(counted, key=lambda word: (-counted[word], word))
    clause = (Token(stem(word)),)
    return Term(
        word, clause, frequency(slot, clause), corrected_from=term.word, part_of=term.part_of
    )


def _count_known(seen: Sequence[Candidate], tokens: dict[str, str]) -> Counter[str]:
    """Count the documents of each token.

    Few are known, so searching for them is faster than splitting the texts.
    """
    padded = [(f" {token} ", word) for token, word in tokens.items()]
    counted: Counter[str] = Counter()
    for one in seen:
        counted.update(word for token, word in padded if token in one.title or token in one.body)
    return counted


def _token_of(word: str) -> str:
    return word if stem(word) == word else AS_WRITTEN + word


def _one_slip_away(word: str) -> set[str]:
    """Return the words with one letter left out, doubled, swapped or wrong.

    The first letter counts as right, unless swapped.
    """
    alphabet = next((letters for pattern, letters in _ALPHABETS if pattern.fullmatch(word)), "")
    if len(word) < MIN_CORRECTED or not alphabet:
        return set()
    splits = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    removed = {head + tail[1:] for head, tail in splits if tail}
    swapped = {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)}
    changed = {head + letter + tail[1:] for head, tail in splits if tail for letter in alphabet}
    added = {head + letter + tail for head, tail in splits for letter in alphabet}
    return (removed | swapped | changed | added) - {word}
