"""Split text into the tokens to index and search. Done here, so that every database finds and ranks
the same.

A token contains only letters and digits. Words are folded and stemmed. An identifier gives its
parts beside the whole. Chinese, Japanese and Korean text gives pairs of characters. If a stem
differs from the word, the word is kept too, marked, for prefixes: "authenticat" is not a prefix of
the stem "authent".
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import Stemmer  # type: ignore[import-not-found]  # a C module without types

MAX_TOKEN = 40
# Marks a word as written. No text has it inside a word, and FTS5's ascii tokenizer treats it as a
# letter.
AS_WRITTEN = "·"

_CJK = (
    "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003134f"
)
_EMOJI = "\u2600-\u27bf\U0001f000-\U0001faff"
_WORD = re.compile(
    rf"[^\W_]+(?:[_-]+[^\W_]+)*(?:['’](?:s|t|re|ve|ll|d|m)\b)?|[{_EMOJI}]", re.IGNORECASE
)
# The same for ASCII, which most texts are, in half the time.
_ASCII_WORD = re.compile(
    r"[A-Za-z0-9]+(?:[_-]+[A-Za-z0-9]+)*(?:'(?:[sStTdDmM]|[rRvV][eE]|[lL][lL])\b)?", re.ASCII
)
_CLITIC = re.compile(r"['’]\w+$")
_RUN = re.compile(rf"[{_CJK}]+|[^{_CJK}]+")
_HAS_CJK = re.compile(rf"[{_CJK}]")
_REF = re.compile(r"(task|epic)-0*?([1-9][0-9]*|0)", re.IGNORECASE | re.ASCII)
_SEPARATORS = re.compile("[_-]+")
# getHTTPResponse2 → get HTTP Response 2
_PARTS = re.compile(
    r"[A-ZÀ-ÖØ-ÞЀ-Я]+(?![a-zß-öø-ÿа-џ])|[A-ZÀ-ÖØ-ÞЀ-Я]?[^\W\d_A-ZÀ-ÖØ-ÞЀ-Я]+|\d+|[^\W\d_]+"
)
_COMBINING = re.compile("[\u0300-\u036f]+")
_CYRILLIC = re.compile("[\u0400-\u04ff]+")
_ENGLISH, _RUSSIAN = Stemmer.Stemmer("english"), Stemmer.Stemmer("russian")


@dataclass(frozen=True)
class Analysed:
    """Hold one word: its search terms, and its written form where that differs."""

    terms: tuple[str, ...]
    written: tuple[str, ...] = ()

    @cached_property
    def all(self) -> tuple[str, ...]:
        return self.terms + tuple(AS_WRITTEN + word for word in self.written)


def fold(text: str) -> str:
    """Fold to lower case, normalize compatible forms and drop accents: É, é and e are the same
    letter.
    """
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", _COMBINING.sub("", decomposed)).casefold()


def words(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield each word with its position.

    In text without spaces, each pair of characters is a word.
    """
    for match in _WORD.finditer(text):
        word = match.group()
        if word.isascii() or not _HAS_CJK.search(word):
            yield match.start(), match.end(), word
        else:
            yield from _split_scripts(match.start(), word)


def word_around(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the word of an ASCII text at a position."""
    while start and (text[start - 1].isalnum() or text[start - 1] in "_-"):
        start -= 1
    while text[start] in "_-":
        start += 1
    match = _WORD.match(text, start)
    stop = max(match.end() if match else end, end)
    return start, stop, text[start:stop]


def analyse(text: str) -> list[str]:
    """Return the tokens of a text: terms as often as they occur, then each written form once."""
    found = _ASCII_WORD.findall(text) if text.isascii() else [word for _, _, word in words(text)]
    analysed = {word: analyse_word(word) for word in dict.fromkeys(found)}
    terms = [term for word in found for term in analysed[word].terms]
    written = dict.fromkeys(word for one in analysed.values() for word in one.written)
    return terms + [AS_WRITTEN + word for word in written]


@lru_cache(maxsize=100_000)
def analyse_word(word: str) -> Analysed:
    if is_cjk(word):
        return Analysed((fold(word),))
    word = _CLITIC.sub("", word)
    if ref := _REF.fullmatch(word):
        return Analysed((f"{ref[1].lower()}{ref[2]}", ref[2]))
    parts = [part for piece in _SEPARATORS.split(word) for part in _PARTS.findall(piece)]
    if len(parts) < 2:
        return _simple(fold(_SEPARATORS.sub("", word)))
    analysed = [_simple(fold(part)) for part in parts]
    whole = _clean(fold(_SEPARATORS.sub("", word)))
    terms = tuple(term for one in analysed for term in one.terms)
    return Analysed(
        tuple(filter(None, (whole, *terms))),
        tuple(word for one in analysed for word in one.written),
    )


def is_cjk(word: str) -> bool:
    return _HAS_CJK.match(word) is not None


def is_ref(word: str) -> bool:
    """Return whether the word is a ref.

    A user who types TASK-39 means that task, not anything with a 39 in it.
    """
    return _REF.fullmatch(word) is not None


def stem(word: str) -> str:
    """Stem a folded word."""
    if len(word) < 3:
        return word
    if word.isascii():
        return str(_ENGLISH.stemWord(word)) if word.isalpha() else word
    return str(_RUSSIAN.stemWord(word)) if _CYRILLIC.fullmatch(word) else word


def _simple(folded: str) -> Analysed:
    word = _clean(folded)
    if word.isascii() and word.isdigit():
        return Analysed((word.lstrip("0") or "0",))
    if not word:
        return Analysed(())
    stemmed = stem(word)
    return Analysed((stemmed,), (word,) if stemmed != word else ())


def _clean(folded: str) -> str:
    """Keep only letters and digits.

    Folding can produce other characters, which PostgreSQL and FTS5 must not get.
    """
    kept = (
        folded
        if folded.isalnum()
        else "".join(c for c in folded if c.isalnum() or (not c.isascii() and c.isprintable()))
    )
    return kept.replace(AS_WRITTEN, "")[:MAX_TOKEN]


def _split_scripts(start: int, word: str) -> Iterator[tuple[int, int, str]]:
    for run in _RUN.finditer(word):
        text, at = run.group(), start + run.start()
        if not _HAS_CJK.match(text):
            for match in _WORD.finditer(text):
                yield at + match.start(), at + match.end(), match.group()
        else:
            # The last one alone: then every character begins a token, and one character is found as
            # a prefix.
            for offset in range(len(text)):
                pair = text[offset : offset + 2]
                yield at + offset, at + offset + len(pair), pair
