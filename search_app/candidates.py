"""Choose the matches to rank: all of them, or among very many the likeliest, found without reading
the rest.
"""

from collections.abc import Iterator, Sequence

from django.db.models import BigIntegerField, CharField, QuerySet

from resources_app.database.prepared import Param, prepared
from search_app.backends import backend
from search_app.backends.base import Allowed, Candidate, Clause, Expression
from search_app.models import Document
from search_app.terms import Term

WINDOW = 300


def gather(
    slot: str,
    terms: Sequence[Term],
    allowed: Allowed,
    total: int,
    *,
    title_key: int,
    exact_ids: Sequence[tuple[str, int]],
) -> list[Candidate]:
    everything = Expression(tuple(term.clause for term in terms))
    if total <= WINDOW:
        return backend().candidates(slot, everything, allowed, WINDOW)
    named = _named(slot, title_key, exact_ids)
    found = {one.id: one for one in backend().among(slot, named, allowed)} if named else {}
    for expression in _likeliest_first(terms):
        room = WINDOW - len(found)
        if room <= 0:
            break
        found |= {
            one.id: one
            for one in backend().candidates(slot, expression, allowed, room, without=list(found))
        }
    return list(found.values())


def is_a_title(slot: str, allowed: Allowed, title_key: int) -> bool:
    named = _named(slot, title_key, ())
    return bool(named and backend().among(slot, named, allowed))


def _named(slot: str, title_key: int, things: Sequence[tuple[str, int]]) -> list[int]:
    """Return documents that are exactly what was typed.

    They match, because they have every word of it.
    """
    ids = prepared("titled", _titled).run(slot=slot, title_key=title_key)
    for kind, number in things:
        ids += Document.objects.filter(slot=slot, kind=kind, object_id=number).values_list(
            "pk", flat=True
        )
    return ids


def _titled() -> QuerySet[Document, int]:
    slot, key = Param("slot", CharField()), Param("title_key", BigIntegerField())
    return Document.objects.filter(slot=slot, title_key=key).values_list("pk", flat=True)[:WINDOW]


def _likeliest_first(terms: Sequence[Term]) -> Iterator[Expression]:
    clauses = tuple(term.clause for term in terms)
    yield Expression(clauses, every=True, in_title=True)
    yield Expression(clauses, every=True)
    if rare := _rare(terms):
        yield Expression(rare)
    yield Expression(clauses, in_title=True)
    yield Expression(clauses)


def _rare(terms: Sequence[Term]) -> tuple[Clause, ...]:
    """Return as many of the rarest words as fit into the window together."""
    chosen, documents = [], 0
    for term in sorted(terms, key=lambda term: term.frequency):
        documents += term.frequency
        if documents > WINDOW:
            break
        if term.frequency:
            chosen.append(term.clause)
    return tuple(chosen)
