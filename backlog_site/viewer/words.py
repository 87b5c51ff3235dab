"""Parse typed filters such as `@me status:blocked label:bug thumbnails`.

Other words stay search words.
"""

from collections.abc import Iterable

from backlog_site.viewer.queries.people import team
from resources_app.fields.declarations import parse_ref
from resources_app.vocabulary import Priority, Status

# Typed name → field of the collection language.
NAMES = {"status": "status", "label": "label", "epic": "epic_id", "priority": "priority"}
_CLOSED = {"status": Status.labels, "priority": Priority.labels}


def read_words(
    text: str, me: str, known: Iterable[str] = NAMES.values()
) -> tuple[list[tuple[str, str]], str]:
    """Return the filters as pairs, and the rest.

    A prefix of a status or a name is enough: `status:bl @ali`.
    """
    pairs: list[tuple[str, str]] = []
    rest: list[str] = []
    for word in text.split():
        found = _pairs(word, me)
        if found and all(name in known or name == "assignee" for name, _ in found):
            pairs += found
        else:
            rest.append(word)
    return pairs, " ".join(rest)


def _pairs(word: str, me: str) -> list[tuple[str, str]]:
    if word.startswith("@"):
        return [("assignee", name) for name in _people(word[1:].lower(), me)]
    typed, colon, value = word.partition(":")
    name = NAMES.get(typed.lower(), "") if colon and value else ""
    if name in _CLOSED:
        beginning = value.lower().replace("-", "_")
        return [(name, one) for one in _CLOSED[name] if one.startswith(beginning)]
    if name == "epic_id":
        return [(name, value.upper())] if parse_ref(value.upper(), "EPIC") else []
    return [(name, value)] if name else []


def _people(beginning: str, me: str) -> list[str]:
    if beginning in {"me", "nobody"}:
        return [me if beginning == "me" else ""]
    return [
        one.username for one in team() if beginning and one.username.lower().startswith(beginning)
    ]
