"""Show why an object was found: about 120 characters around the best match, as plain text with
highlight offsets.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from search_app.backends.base import Clause
from search_app.index.documents import TextField, indexed_spans
from search_app.tokens import AS_WRITTEN, analyse_word, word_around, words

LENGTH = 120
# How far a cut may move to a word boundary.
REACH = 20
# Maximum number of matches of a text considered for the densest stretch.
MAX_MATCHES = 200
# How much text around the match is stripped of Markdown.
NEIGHBOURHOOD = 400

_MARKDOWN = (
    (re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n]*$", re.MULTILINE), ""),
    (
        re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\s]{0,2000}(?:[ \t]+\"[^\"\n]{0,200}\")?\)"),
        r"\1",
    ),
    (
        re.compile(
            r"^[ \t]{0,8}(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|\d{1,4}[.)]["
            r" \t]+)",
            re.MULTILINE,
        ),
        "",
    ),
    (re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,20}$|^[ \t|:-]{3,200}$", re.MULTILINE), ""),
    (re.compile(r"</?[a-zA-Z][^<>\n]{0,200}>"), ""),
    (re.compile(r"\*{1,3}|~~|`+|(?<![^\W_])_{1,2}|_{1,2}(?![^\W_])"), ""),
    # Starts only at the first blank of a run: starting at each would take quadratic time.
    (re.compile(r"(?<![ \t])[ \t]*\|[ \t]*"), " "),
)
_SPACE = re.compile(r"\s+")


_NOTHING = re.compile("(?!)")
_Split = Callable[[str], Iterator[tuple[int, int, str]]]


class _Match(NamedTuple):
    start: int
    end: int
    clause: int


class _Place(NamedTuple):
    field: TextField
    matches: list[_Match]

    @property
    def distinct(self) -> int:
        return len({match.clause for match in self.matches})


class Lookup(dict[str, int | None]):
    """Map words of a text to clauses of the query. Cached, because texts repeat their words."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        super().__init__()
        tokens = [(token, number) for number, clause in enumerate(clauses) for token in clause]
        self._exact = {token.text: number for token, number in tokens if not token.is_prefix}
        self._prefixes = [(token.text, number) for token, number in tokens if token.is_prefix]
        roots = {_root(token.text) for token, _ in tokens}
        self._roots = (
            re.compile("|".join(map(re.escape, sorted(roots))), re.IGNORECASE)
            if roots
            else _NOTHING
        )

    def likely_words(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield likely matches quickly.

        Misses only words that are not written like the beginning of their token.
        """
        if not text.isascii():
            yield from words(text)
            return
        at = 0
        while root := self._roots.search(text, at):
            start, end, word = word_around(text, root.start(), root.end())
            yield start, end, word
            at = end

    def __missing__(self, word: str) -> int | None:
        self[word] = number = self._find(analyse_word(word).all)
        return number

    def _find(self, tokens: Sequence[str]) -> int | None:
        for token in tokens:
            if token in self._exact:
                return self._exact[token]
        begun = (
            number
            for prefix, number in self._prefixes
            if any(token.startswith(prefix) for token in tokens)
        )
        return next(begun, None)


def _root(token: str) -> str:
    """Return what a text must contain for a match to be likely.

    Endings and inner hyphens may differ.
    """
    word = token.removeprefix(AS_WRITTEN)
    return word[: 4 if len(word) > 5 else 3]


def make_snippet(fields: Sequence[TextField], lookup: Lookup) -> dict[str, Any]:
    """Make a snippet from the field that has most of the words; ties go to the first.

    Without any match it is the title, which is then not listed in `matched_fields`.
    """
    places = _places(fields, lookup, lookup.likely_words) or _places(fields, lookup, words)
    best = max(places, key=lambda place: place.distinct, default=_Place(fields[0], []))
    text, highlights = _shown(best, lookup)
    return {
        "field": best.field.name,
        "text": text or fields[-1].text,
        "matched_fields": [place.field.name for place in places],
        "highlights": highlights,
    }


def plain_text(text: str) -> str:
    """Return Markdown as plain text on one line."""
    for pattern, replacement in _MARKDOWN:
        text = pattern.sub(replacement, text)
    return _flat(text)


def _flat(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def _places(fields: Sequence[TextField], lookup: Lookup, split: _Split) -> list[_Place]:
    places = (
        _Place(field, list(_indexed_matches(field.text, lookup, split)))
        for field in fields
        if field.text
    )
    return [place for place in places if place.matches]


def _indexed_matches(text: str, lookup: Lookup, split: _Split) -> Iterator[_Match]:
    for start, end in indexed_spans(text):
        for match in _matches(text[start:end], lookup, split):
            yield _Match(match.start + start, match.end + start, match.clause)


def _matches(text: str, lookup: Lookup, split: _Split = words) -> Iterator[_Match]:
    found = 0
    for start, end, word in split(text):
        number = lookup[word]
        if number is not None:
            yield _Match(start, end, number)
            found += 1
            if found == MAX_MATCHES:
                return


def _shown(place: _Place, lookup: Lookup) -> tuple[str, list[list[int]]]:
    """Return the text to show.

    Only the neighbourhood of the match is stripped of Markdown, which may hide it, as in a link's
    URL.
    """
    raw = place.field.text
    first, last = _densest(place.matches)
    start, end = _lines_around(raw, first, last)
    near = raw[start:end]
    plain = plain_text(near) if place.field.is_markdown else _flat(near)
    matches = list(_matches(plain, lookup))
    if place.matches and not matches:
        plain = _flat(near)
        matches = list(_matches(plain, lookup))
    return _cut(plain, matches, is_start=not raw[:start].strip(), is_end=not raw[end:].strip())


def _lines_around(text: str, first: int, last: int) -> tuple[int, int]:
    """Return whole lines if they are short enough, so that no Markdown is cut apart."""
    start, end = max(first - NEIGHBOURHOOD, 0), min(last + NEIGHBOURHOOD, len(text))
    line = text.find("\n", start, first)
    start = line + 1 if start and line >= 0 else start
    line = text.rfind("\n", last, end)
    end = line if end < len(text) and line > last + LENGTH else end
    while 0 < start < len(text) and not _is_between_characters(text, start):
        start -= 1
    while 0 < end < len(text) and not _is_between_characters(text, end):
        end += 1
    return start, end


def _cut(
    text: str, matches: Sequence[_Match], *, is_start: bool, is_end: bool
) -> tuple[str, list[list[int]]]:
    start, end = _window(text, matches)
    head = "" if is_start and start == 0 else "…"
    tail = "" if is_end and end == len(text) else "…"
    shift = len(head) - start
    inside = [match for match in matches if start <= match.start and match.end <= end]
    return head + text[start:end] + tail, _merged(
        [[match.start + shift, match.end + shift] for match in inside]
    )


def _window(text: str, matches: Sequence[_Match]) -> tuple[int, int]:
    if len(text) <= LENGTH:
        return 0, len(text)
    first, last = _densest(matches)
    spare = LENGTH - min(last - first, LENGTH)
    start = min(max(first - spare // 2, 0), len(text) - LENGTH)
    start = _start(text, start, latest=first)
    stop = min(start + LENGTH, len(text))
    return start, _end(text, stop, earliest=min(last, stop))


def _densest(matches: Sequence[_Match]) -> tuple[int, int]:
    """Return the stretch with the most different words."""
    best, best_count = (0, 0), 0
    for position, first in enumerate(matches):
        near = [
            match
            for match in matches[position : position + 30]
            if match.end - first.start <= LENGTH
        ]
        count = len({match.clause for match in near})
        if count > best_count:
            best, best_count = (first.start, near[-1].end if near else first.end), count
    return best


def _start(text: str, at: int, latest: int) -> int:
    """Move the start to a word boundary within reach, else to a grapheme boundary; never past the
    match.
    """
    for position in range(at, min(at + REACH, latest) + 1):
        if position == 0 or text[position - 1] == " ":
            return position
    while at and not _is_between_characters(text, at):
        at -= 1
    return at


def _end(text: str, at: int, earliest: int) -> int:
    for position in range(at, max(at - REACH, earliest) - 1, -1):
        if position == len(text) or text[position] == " ":
            return position
    while at < len(text) and not _is_between_characters(text, at):
        at += 1
    return at


def _is_between_characters(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if (
        unicodedata.category(after).startswith("M")
        or after in "\u200d\u200c"
        or "\U0001f3fb" <= after <= "\U0001f3ff"
    ):
        return False
    if before == "\u200d" or "\U000e0020" <= after <= "\U000e007f" or "\u1160" <= after <= "\u11ff":
        return False
    if _is_regional(before) and _is_regional(after):
        pairs = len(text[:at]) - len(text[:at].rstrip("".join(map(chr, range(0x1F1E6, 0x1F200)))))
        return pairs % 2 == 0
    return True


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _merged(spans: list[list[int]]) -> list[list[int]]:
    """Merge highlights, because pairs of characters overlap."""
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
