"""Find a page of documents: lexical matches, joined by semantic ones where there are vectors, in
one ranking.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from resources_app.identity.roles import Person, may_read
from search_app.backends import backend
from search_app.backends.base import Allowed, Candidate, Expression
from search_app.candidates import gather
from search_app.filters import Filters, allowed_documents, documents, limited_kinds
from search_app.index.documents import title_key
from search_app.index.statistics import Statistics, statistics
from search_app.ranking import Ranked, rank
from search_app.semantic import meaning
from search_app.terms import Term, find_terms

# Maximum number of purely semantic hits.
NEAR = 100
_EXACT_ID = re.compile(r"(?:(task|epic)[-_ ]?)?0*([1-9][0-9]{0,14})", re.IGNORECASE | re.ASCII)
Names = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Found:
    """Hold a page of document ids, with the scores of ranked ones."""

    page: list[int]
    # Documents with a word of the query, and purely semantic matches.
    total: int
    semantic_total: int = 0
    ranked: dict[int, Ranked] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)
    is_hybrid: bool = False


def find(
    user: Person, slot: str, text: str, filters: Filters, sort: str, offset: int, limit: int
) -> Found:
    limited = limited_kinds(user)
    allowed = allowed_documents(user, slot, filters, limited)
    if allowed is None:
        return Found([], 0)
    # Before the terms: it drops stale cache entries.
    overall = statistics(slot)

    def visible() -> Allowed:
        return (
            allowed_documents(user, slot, Filters(), limited) if filters != Filters() else None
        ) or allowed

    terms = find_terms(slot, text, visible)
    if not terms:
        return Found([], 0)
    lookup = _Lookup(slot, text, terms, allowed, overall)
    return lookup.recent(offset, limit) if sort == "recent" else lookup.relevant(offset, limit)


def newest(user: Person, slot: str, filters: Filters, offset: int, limit: int) -> Found:
    """Return everything the filters select, for a query whose words were all filters."""
    if not may_read(user):
        return Found([], 0)
    rows = documents(user, slot, filters).order_by("-updated_at", "kind", "object_id")
    return Found(list(rows.values_list("pk", flat=True)[offset : offset + limit]), rows.count())


class _Lookup:
    def __init__(
        self, slot: str, text: str, terms: list[Term], allowed: Allowed, overall: Statistics
    ) -> None:
        self.slot, self.text, self.terms, self.allowed, self.overall = (
            slot,
            text,
            terms,
            allowed,
            overall,
        )
        self.expression = Expression(tuple(term.clause for term in terms))
        self.matching = backend().count(slot, self.expression, allowed)

    def recent(self, offset: int, limit: int) -> Found:
        """Return lexical matches only: sorting by time needs a similarity threshold, which semantic
        search lacks.
        """
        page = backend().page(
            self.slot, self.expression, self.allowed, "recent", offset=offset, limit=limit
        )
        return Found(page, self.matching, terms=self.terms)

    def relevant(self, offset: int, limit: int) -> Found:
        named, key = exact_ids(self.text), title_key(self.text)
        meant = meaning.understood(self.text) if not named and meaning.is_ready() else ""
        window = gather(
            self.slot, self.terms, self.allowed, self.matching, title_key=key, exact_ids=named
        )
        near = meaning.near_documents(meant, self.allowed, NEAR) if meant else {}
        beside = self._beside(near, window)
        similar = near | self._similarity(meant, window, near) if meant else None
        ranked = rank(
            [*window, *beside],
            self.terms,
            self.overall,
            title_key=key,
            exact_ids=named,
            meaning=similar,
        )
        hits = [
            one
            for one in ranked
            if not one.is_semantic or near.get(one.candidate.id, 0.0) >= meaning.FLOOR
        ]
        # Candidates outside the window that have query words are already counted among the matches.
        semantic_total = sum(1 for one in hits if one.is_semantic)
        by_id = {one.candidate.id: one for one in hits}
        page = self._page(list(by_id), self.matching + semantic_total, offset, limit)
        return Found(page, self.matching, semantic_total, by_id, self.terms, bool(meant))

    def _beside(self, near: dict[int, float], window: Sequence[Candidate]) -> list[Candidate]:
        others = sorted(near.keys() - {one.id for one in window})
        return backend().among(self.slot, others, self.allowed) if others else []

    def _similarity(
        self, meant: str, window: Sequence[Candidate], near: dict[int, float]
    ) -> dict[int, float]:
        return meaning.similarity(meant, [one.id for one in window if one.id not in near])

    def _page(self, order: list[int], total: int, offset: int, limit: int) -> list[int]:
        """Return a page. After the ranked hits come the other matches, newest first."""
        page = order[offset : offset + limit]
        if len(page) < limit and offset + len(page) < total:
            beyond, missing = max(offset - len(order), 0), limit - len(page)
            page += backend().page(
                self.slot,
                self.expression,
                self.allowed,
                "newest",
                offset=beyond,
                limit=missing,
                without=order,
            )
        return page


def exact_ids(text: str) -> Names:
    """Resolve TASK-39, task-0039 and 39 to TASK-0039; a bare number also to the epic."""
    match = _EXACT_ID.fullmatch(text.strip())
    if match is None:
        return ()
    kinds = (match[1].lower(),) if match[1] else ("task", "epic")
    return tuple((kind, int(match[2])) for kind in kinds)
