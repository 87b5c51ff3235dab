"""Split a text into passages that get a vector each, about as long as the model reads at once, each
under the title.
"""

from collections.abc import Sequence

from search_app.index.documents import TextField

LENGTH = 1000
# Only the first pages of a book: a passage takes the worker a tenth of a second.
MOST = 16
_SKIPPED = frozenset({"id", "path"})


def passages_of(fields: Sequence[TextField]) -> list[str]:
    title, *rest = fields
    text = "\n".join(field.text for field in rest if field.text and field.name not in _SKIPPED)
    return [f"{title.text}\n{stretch}" for stretch in _stretches(text)]


def _stretches(text: str) -> list[str]:
    found: list[str] = []
    start = 0
    while len(found) < MOST and (start < len(text) or not found):
        end = min(start + LENGTH, len(text))
        if end < len(text):
            space = text.rfind(" ", start + LENGTH // 2, end)
            end = space if space > 0 else end
        found.append(text[start:end])
        start = end
    return found
