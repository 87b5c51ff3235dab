"""Implement `search_unified`, the one search behind REST, MCP, the viewer and the lists."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from django.db.models import Model, QuerySet

from resources_app.addresses.hidden_refs import Mask
from resources_app.database.prepared import run_for
from resources_app.errors import ValidationFailed
from resources_app.history.documents import uri_of
from resources_app.identity.roles import Person, may_read, visibility_key
from resources_app.querying.weights import MAX_ANSWER
from resources_app.reading.read_many import FRAME, NOTE, fitting, room_for, weight
from resources_app.vocabulary import Status
from search_app.backends import backend
from search_app.backends.base import Expression, Token
from search_app.candidates import is_a_title
from search_app.filters import (
    Filters,
    Words,
    allowed_documents,
    interpret,
    limited_kinds,
    parse_filters,
)
from search_app.index.documents import (
    SOURCES,
    Comments,
    comments_on,
    fields_of,
    title_key,
    title_of,
    tokens_of,
)
from search_app.index.rows import live_slot, live_state
from search_app.matching import Found, find, newest
from search_app.models import Document
from search_app.ranking import Parts
from search_app.snippets import Lookup, make_snippet
from search_app.terms import Term, parse

MAX_QUERY = 1000
MAX_LIMIT = 100
SORTS = ("relevant", "recent")
# Each text may take megabytes.
READ_AT_ONCE = 20
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def search_unified(
    user: Person,
    query: str,
    *,
    types: Words = None,
    status: Words = None,
    parent_id: str | None = None,
    assignee: str | None = None,
    label: Words = None,
    sort: str = "relevant",
    limit: int = 20,
    cursor: str | None = None,
    include_content: bool = False,
    include_scores: bool = False,
    explain: bool = False,
    max_tokens: int | None = None,
) -> dict[str, Any]:
    """Search everything.

    With `max_tokens` a page ends before it exceeds that; its cursor continues there.
    """
    text = _checked_query(query)
    _check_page(sort, limit)
    filters = parse_filters(user, types, status, parent_id, assignee, label)
    request = _fingerprint(text, filters, sort)
    offset = _offset(cursor, request)
    slot, index_version = live_state() if may_read(user) else (live_slot(), "")
    wanted, narrowed = _interpreted(user, slot, text, filters)
    if text and not wanted:
        found = newest(user, slot, narrowed, offset, limit)
    else:
        found = find(user, slot, wanted, narrowed, sort, offset, limit)
    shown = _Rendering(user, found, include_content, include_scores or explain, explain)
    results, is_whole = shown.results()
    given = results if max_tokens is None else _within(results, room_for(max_tokens))
    after = offset + (limit if given is results and is_whole else len(given))
    answer: dict[str, Any] = {
        "results": given,
        "total": found.total,
        "semantic_total": found.semantic_total,
        "query": text,
        "search_mode": "hybrid" if found.is_hybrid else "bm25",
        "index_version": index_version,
        "next_cursor": _cursor(after, request)
        if after < found.total + found.semantic_total
        else None,
    }
    return answer | ({"explain": _explanation(wanted, narrowed, found.terms)} if explain else {})


def matching_numbers(model: type[Model], text: str) -> QuerySet[Any]:
    """Return the numbers of a model's objects that contain every word, for `search=` of a
    collection.

    Words are not corrected: known words depend on the caller, and a filter must mean what it says.
    """
    slot = live_slot()
    kind = next(kind for kind, source in SOURCES.items() if source.model is model)
    rows = Document.objects.filter(slot=slot, kind=kind)
    terms = parse(_UNSTORABLE.sub(" ", text)[:MAX_QUERY])
    if not terms:
        return rows.none().values("object_id")
    matches = backend().matching(slot, Expression(tuple(term.clause for term in terms), every=True))
    return rows.filter(pk__in=matches).values("object_id")


class DocumentText:
    """Hold the tokens of an item as the index would store them with its current comments.

    `matching_numbers` decides about rows, this class about documents that are no longer indexed.
    """

    def __init__(self, kind: str, number: int, document: Mapping[str, Any]) -> None:
        source = SOURCES[kind]
        texts = {name: document[name] for name in source.texts if name in document}
        said = comments_on(kind, [number]).get(number, Comments())
        title, body = tokens_of(fields_of(source.model(number=number, **texts), said.bodies))
        self._title, self._all = set(title), {*title, *body}

    def has_every_word(self, wanted: str) -> bool:
        terms = parse(_UNSTORABLE.sub(" ", wanted)[:MAX_QUERY])
        return bool(terms) and all(any(map(self._has, term.clause)) for term in terms)

    def _has(self, wanted: Token) -> bool:
        tokens = self._title if wanted.in_title else self._all
        if wanted.is_prefix:
            return any(token.startswith(wanted.text) for token in tokens)
        return wanted.text in tokens


class _Rendering:
    """Render documents as results. The objects are fetched through `visible_to` again."""

    def __init__(
        self, user: Person, found: Found, with_content: bool, with_scores: bool, explain: bool
    ) -> None:
        self.user, self.found = user, found
        self.with_content, self.with_scores, self.explain = with_content, with_scores, explain
        self.lookup = Lookup([term.clause for term in found.terms])
        self.places = self._places()

    def results(self) -> tuple[list[dict[str, Any]], bool]:
        """Return the results, and whether the page is complete.

        It ends early where the contents exceed the answer limit.
        """
        results: list[dict[str, Any]] = []
        room = MAX_ANSWER
        for start in range(0, len(self.found.page), READ_AT_ONCE):
            numbers = self.found.page[start : start + READ_AT_ONCE]
            for result in self._results_of(numbers):
                room -= len(result.get("content", ""))
                if room < 0 and results:
                    return results, False
                results.append(result)
        return results, True

    def _results_of(self, page: Sequence[int]) -> Iterator[dict[str, Any]]:
        things: dict[tuple[str, int], Any] = {}
        comments: dict[tuple[str, int], Sequence[str]] = {}
        shown = [(number, self.places.get(number, ("", 0))) for number in page]
        for kind in {kind for _, (kind, _) in shown if kind}:
            numbers = [number for _, (of_kind, number) in shown if of_kind == kind]
            things |= {(kind, thing.pk): thing for thing in self._visible(kind, numbers)}
            comments |= {
                (kind, number): said.bodies for number, said in comments_on(kind, numbers).items()
            }
        found = [(number, place) for number, place in shown if place in things]
        yield from Mask(self.user).all_shown(
            self._result(number, things.pop(place), comments.pop(place, ()))
            for number, place in found
        )

    def _visible(self, kind: str, numbers: list[int]) -> list[Any]:
        rows = SOURCES[kind].model.objects
        key = ("found", kind, self.user.pk, visibility_key(self.user))
        return run_for(numbers, key, lambda given: rows.visible_to(self.user).filter(pk__in=given))

    def _places(self) -> dict[int, tuple[str, int]]:
        ranked = self.found.ranked
        known = {number: ranked[number].candidate for number in self.found.page if number in ranked}
        places = {number: (one.kind, one.object_id) for number, one in known.items()}
        if others := [number for number in self.found.page if number not in ranked]:
            rows = Document.objects.filter(pk__in=others).values_list("pk", "kind", "object_id")
            places |= {number: (kind, object_id) for number, kind, object_id in rows}
        return places

    def _result(self, number: int, thing: Any, comments: Sequence[str]) -> dict[str, Any]:
        fields = fields_of(thing, comments)
        result: dict[str, Any] = {
            "id": thing.ref,
            "uri": uri_of(thing),
            "type": thing.KIND,
            "title": title_of(thing),
            "status": Status(thing.status).label if hasattr(thing, "status") else None,
            "parent_id": SOURCES[thing.KIND].parent(thing) or None,
            "snippet": make_snippet(fields, self.lookup),
        }
        ranked = self.found.ranked.get(number)
        if ranked and not ranked.has_typed_word:
            result["match"] = "semantic" if ranked.is_semantic else "corrected"
        if self.with_scores:
            result["score"] = ranked.score if ranked else 0.0
        if self.with_content:
            result["content"] = next(
                field.text for field in fields if field.name in {"description", "content"}
            )
        if self.explain:
            result["explain"] = _rounded(ranked.parts) if ranked else {"beyond_ranking": True}
        return result


def _within(results: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return the results that fit.

    The first is always included, its content truncated if necessary.
    """
    left = room - FRAME - NOTE
    for position, result in enumerate(results):
        left -= weight(result) + 1
        if left < 0 and position:
            return results[:position]
        if left < 0 and (text := result.get("content", "")):
            keep = fitting(text, left + weight(text))
            note = {"field": "content", "characters_left": len(text) - keep}
            return [result | {"content": text[:keep], "truncated": note}]
    return results


def _interpreted(user: Person, slot: str, text: str, filters: Filters) -> tuple[str, Filters]:
    """Interpret the query, unless an object has exactly this title."""
    wanted, narrowed = interpret(text, filters)
    if wanted == text:
        return text, filters
    allowed = allowed_documents(user, slot, filters, limited_kinds(user))
    if allowed is None or is_a_title(slot, allowed, title_key(text)):
        return text, filters
    return wanted, narrowed


def _checked_query(query: Any) -> str:
    if not isinstance(query, str):
        raise ValidationFailed("query must be a text.", field="query", value=query)
    if len(query) > MAX_QUERY:
        raise ValidationFailed(
            f"query must be at most {MAX_QUERY} characters (got {len(query)}).",
            field="query",
            max_length=MAX_QUERY,
        )
    return _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", query)


def _check_page(sort: Any, limit: Any) -> None:
    if sort not in SORTS:
        raise ValidationFailed(
            f"sort cannot be {sort!r}.", field="sort", value=sort, allowed_values=list(SORTS)
        )
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise ValidationFailed(
            f"limit must be a whole number from 1 to {MAX_LIMIT}.", field="limit", value=limit
        )


def _fingerprint(text: str, filters: Filters, sort: str) -> str:
    whole = json.dumps([text, asdict(filters), sort], sort_keys=True)
    return hashlib.blake2b(whole.encode(), digest_size=6).hexdigest()


def _cursor(offset: int, request: str) -> str:
    return base64.urlsafe_b64encode(f"{offset}.{request}".encode()).decode().rstrip("=")


def _offset(cursor: Any, request: str) -> int:
    if cursor is None or cursor == "":
        return 0
    try:
        offset, of_request = (
            base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii").split(".")
        )
        if of_request != request or not offset.isdigit() or len(offset) > 9:
            raise ValueError
        return int(offset)
    except (ValueError, TypeError, AttributeError, UnicodeError, binascii.Error):
        raise ValidationFailed(
            "cursor must be the next_cursor of an answer to the same query and filters.",
            field="cursor",
            value=cursor,
        ) from None


def _rounded(parts: Parts) -> dict[str, float]:
    return {name: round(value, 4) for name, value in parts._asdict().items() if name != "bm25"}


def _explanation(text: str, filters: Filters, terms: Sequence[Term]) -> dict[str, Any]:
    """Explain how the words were read.

    Omits frequencies, which include documents the caller may not see.
    """
    return {
        "searched": text,
        "filters": {"types": filters.types, "status": filters.status},
        "terms": [
            {"word": term.word, "corrected_from": term.corrected_from or None} for term in terms
        ],
    }
