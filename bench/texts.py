"""Generate texts as teams write them, the same for the same seed: markdown in lines of about 50
characters, a quarter empty.

The lines of this project's own specifications and demo descriptions have these measures.
"""

import random

_SUBJECTS = (
    "The sign-in page",
    "Every background job",
    "The nightly import",
    "The export of large folders",
    "The first answer after a deploy",
    "Search as you type",
    "A scanned contract",
    "An expired token",
    "The list of changes",
    "The billing webhook",
)
_PREDICATES = (
    "says what to do next",
    "is retried three times",
    "takes over two seconds on staging",
    "loses the filter on the way back",
    "shows the folder instead of the title",
    "works with a keyboard alone",
    "was reported by two customers",
    "needs an index",
)
_ENDINGS = ("", "", " (see `{}`)", ", as agreed", ", measured again after the release")
_MODULES = ("accounts", "billing", "search", "imports", "exports", "folders")
_HEADINGS = ("Background", "What to do", "Acceptance", "Notes", "Open questions")
_BLOCK = 8


def markdown(seed: int, length: int) -> str:
    """Return markdown of exactly `length` characters."""
    chance = random.Random(seed)
    lines: list[str] = []
    size = 0
    while size <= length:
        lines.append(_line(chance, len(lines)))
        size += len(lines[-1]) + 1
    return "\n".join(lines)[:length]


def title(seed: int) -> str:
    return f"{_sentence(random.Random(seed))} ({seed})"


def _line(chance: random.Random, position: int) -> str:
    """Return a heading or one of its entries, with an empty line before and after the heading."""
    if position % _BLOCK == 0:
        return f"## {chance.choice(_HEADINGS)}"
    if position % _BLOCK in {1, _BLOCK - 1}:
        return ""
    return f"{chance.choice(('- ', '- [ ] ', '- [x] ', ''))}{_sentence(chance)}."


def _sentence(chance: random.Random) -> str:
    module = f"{chance.choice(_MODULES)}_{chance.randrange(200)}.py"
    return (
        f"{chance.choice(_SUBJECTS)} {chance.choice(_PREDICATES)}{chance.choice(_ENDINGS)}".format(
            module
        )
    )
