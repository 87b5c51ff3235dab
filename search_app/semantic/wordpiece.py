"""Tokenize for the model: BERT's WordPiece, lower case.

The vocabulary is that of bert-base-uncased (Apache-2.0).
"""

import re
import unicodedata
from functools import cache, lru_cache
from pathlib import Path

UNKNOWN, FIRST, LAST = 100, 101, 102
MAX_WORD = 100
# A word that splits into at least this many pieces, with at most this average length, is spelled
# but not known.
OPAQUE_PIECES, OPAQUE_LENGTH = 3, 1.6

_IDEOGRAPHS = "\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f"
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
# A word, or an ideograph or punctuation mark, each of which is a separate word.
_WORD = re.compile(rf"[^\W_{_IDEOGRAPHS}]+|[^\s\w\x00-\x1f\x7f-\x9f]|[_{_IDEOGRAPHS}]")


@cache
def vocabulary() -> dict[str, int]:
    lines = Path(__file__).with_name("vocab.txt").read_text(encoding="utf-8").splitlines()
    return {piece: number for number, piece in enumerate(lines)}


def encode(text: str, limit: int) -> list[int]:
    """Return the numbers of the pieces, at most `limit` including the two markers around them."""
    numbers = [FIRST]
    for word in _WORD.findall(_folded(text)):
        numbers += pieces(word)
        if len(numbers) >= limit:
            break
    return [*numbers[: limit - 1], LAST]


@lru_cache(maxsize=20_000)
def pieces(word: str) -> tuple[int, ...]:
    """Split a word into the longest known prefix, then the longest continuation, and so on."""
    known, found, start = vocabulary(), [], 0
    while start < len(word) <= MAX_WORD:
        end = len(word)
        while end > start and (mark := ("##" if start else "") + word[start:end]) not in known:
            end -= 1
        if end == start:
            break
        found.append(known[mark])
        start = end
    return tuple(found) if start == len(word) else (UNKNOWN,)


def without_opaque_words(text: str) -> str:
    """Return the text itself when every word is known, or "" when none is."""
    found = _WORD.findall(_folded(text))
    kept = [word for word in found if not _is_opaque(word)]
    if len(kept) == len(found):
        return text
    return " ".join(kept) if any(word.isalnum() for word in kept) else ""


def _is_opaque(word: str) -> bool:
    found = pieces(word)
    if found == (UNKNOWN,) or _IDEOGRAPH.match(word):
        return True
    return len(found) >= OPAQUE_PIECES and len(word) / len(found) < OPAQUE_LENGTH


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
