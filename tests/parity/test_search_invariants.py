"""Test the 27 invariants of the unified search: each through REST and through MCP, which answer the
same.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.mcp.clients import modern
from tests.mcp.conftest import Tokens, site, tokens  # noqa: F401
from tests.mcp.site import Site

KINDS = ("task", "epic", "resource")


@dataclass(frozen=True)
class Doors:
    """Call REST and MCP as one user."""

    site: Site
    http: httpx.Client

    def rest(self, q: str, **parameters: Any) -> httpx.Response:
        given = {
            name: ",".join(value) if isinstance(value, list) else value
            for name, value in parameters.items()
        }
        return self.http.get(f"{self.site.url}/api/v1/search/", params={"q": q, **given})

    def mcp(self, q: str, **arguments: Any) -> dict[str, Any]:
        call = {"name": "backlog_search", "arguments": {"query": q, **arguments}}
        result = modern(self.site, self.http, "tools/call", call).json()["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return dict(result)

    def search(self, q: str, **parameters: Any) -> dict[str, Any]:
        response, called = self.rest(q, **parameters), self.mcp(q, **parameters)
        assert response.status_code == 200 and not called["isError"], response.text
        assert response.json() == called["structuredContent"]
        return dict(response.json())

    def snippet(self, q: str) -> dict[str, Any]:
        return dict(self.search(q)["results"][0]["snippet"])

    def task(self, **values: Any) -> str:
        return str(self.site.elsewhere.create(values={"title": "Quiet"} | values, by="alice"))

    def file(self, name: str, content: str) -> None:
        self.site.elsewhere.store(path=f"resources/{name}", content=content, by="alice")


@pytest.fixture(scope="module")
def doors(site: Site, tokens: Tokens) -> Iterator[Doors]:
    with site.client(tokens.bob) as http:
        yield Doors(site, http)


@pytest.fixture
def word() -> str:
    """Return a word that nothing else in the index has, not even with a typo."""
    return "".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(6))


@pytest.fixture
def three_kinds(doors: Doors, word: str) -> str:
    """Return the word after creating one object of each kind that contains it."""
    doors.task(title=f"{word} of users", description="Login with a token")
    doors.site.elsewhere.create(kind="epic", values={"title": f"{word} epic"}, by="alice")
    doors.file(f"{word}.md", f"# Guide\n\nHow {word} works here.")
    return word


# Every result has a snippet


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_each_kind_have_a_whole_snippet(
    doors: Doors, three_kinds: str, kind: str
) -> None:
    [result] = doors.search(three_kinds, types=[kind])["results"]
    assert (
        result["snippet"]["field"]
        and result["snippet"]["text"]
        and result["snippet"]["matched_fields"]
    )


def test_every_result_of_a_mixed_answer_has_a_snippet(doors: Doors, three_kinds: str) -> None:
    results = doors.search(three_kinds)["results"]
    assert len(results) == 3 and all(result["snippet"]["text"] for result in results)


# What a snippet shows


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("title", {"title": "A {}"}),
        ("description", {"description": "There is a {}"}),
        ("evidence", {"evidence": ["first", "a {} seen"]}),
        ("blocked_reason", {"blocked_reason": ["waiting for the {}"], "status": "blocked"}),
        ("references", {"references": [{"url": "https://example.org", "title": "The {}"}]}),
    ],
)
def test_a_snippet_comes_from_the_field_that_matched(
    doors: Doors, word: str, field: str, values: dict[str, Any]
) -> None:
    doors.task(**json.loads(json.dumps(values).replace("{}", word)))
    snippet = doors.snippet(word)
    assert (
        snippet["field"] == field
        and word in snippet["text"]
        and snippet["matched_fields"] == [field]
    )


def test_a_snippet_of_a_resource_comes_from_its_content(doors: Doors, three_kinds: str) -> None:
    doors.file(f"notes-of-{len(three_kinds)}.md", f"# Notes\n\nabout {three_kinds} in the text")
    found = doors.search(f"{three_kinds} in the text", types=["resource"])["results"]
    snippet = next(one["snippet"] for one in found if one["id"].startswith("resources/notes"))
    assert snippet["field"] == "content" and "in the text" in snippet["text"]


def test_a_snippet_names_every_field_that_matched(doors: Doors, word: str) -> None:
    doors.task(title=word, description=word, evidence=[word])
    assert doors.snippet(word)["matched_fields"] == ["title", "description", "evidence"]


def test_a_snippet_of_a_long_text_is_cut_around_the_match(doors: Doors, word: str) -> None:
    doors.task(description="word " * 500 + word + " word" * 500)
    snippet = doors.snippet(word)
    assert word in snippet["text"] and len(snippet["text"]) <= 122
    assert snippet["text"].startswith("…") and snippet["text"].endswith("…")


def test_a_snippet_is_there_although_only_the_id_matched(doors: Doors) -> None:
    ref = doors.task()
    short = f"TASK-{int(ref.removeprefix('TASK-'))}"
    assert doors.snippet(short) == {
        "field": "id",
        "text": ref,
        "matched_fields": ["id"],
        "highlights": [[0, 9]],
    }


def test_a_snippet_is_plain_text(doors: Doors, word: str) -> None:
    doors.task(description=f"# The **{word}** [flies](https://example.org)\n\n<b>high</b>")
    assert doors.snippet(word)["text"] == f"The {word} flies high"


# Types


@pytest.mark.parametrize("kind", KINDS)
def test_types_narrow(doors: Doors, three_kinds: str, kind: str) -> None:
    answer = doors.search(three_kinds, types=[kind])
    assert [result["type"] for result in answer["results"]] == [kind] and answer["total"] == 1


def test_without_types_every_kind_is_found(doors: Doors, three_kinds: str) -> None:
    assert {result["type"] for result in doors.search(three_kinds)["results"]} == set(KINDS)


def test_the_kinds_of_intelligencebank_can_be_asked_for(doors: Doors, three_kinds: str) -> None:
    assert doors.search(three_kinds, types=["ib_folder", "ib_resource"])["total"] == 0


# Sorting


def test_recent_is_by_the_last_change(doors: Doors, word: str) -> None:
    refs = [doors.task(title=f"{word} " * (4 - n)) for n in range(3)]
    assert [result["id"] for result in doors.search(word, sort="recent")["results"]] == refs[::-1]


def test_relevant_is_by_score(doors: Doors, word: str) -> None:
    doors.task(description=f"one {word} among many other words")
    doors.task(title=word)
    scores = [result["score"] for result in doors.search(word, include_scores=True)["results"]]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True) and scores[0] > scores[1]


# Repeatability


def test_the_same_query_gives_the_same_answer(doors: Doors, three_kinds: str) -> None:
    assert doors.search(f"{three_kinds} login") == doors.search(f"{three_kinds} login")


def test_the_same_text_gives_the_same_snippet(doors: Doors, word: str) -> None:
    for _ in range(2):
        doors.task(description=f"a {word} in a text")
    first, second = doors.search(word)["results"]
    assert first["snippet"] == second["snippet"]


# The shape


def test_the_answer_has_the_contracts_shape(doors: Doors, three_kinds: str) -> None:
    answer = doors.search(three_kinds, include_scores=True, include_content=True)
    assert set(answer) == {
        *(
            "results",
            "total",
            "semantic_total",
            "query",
            "search_mode",
            "index_version",
            "next_cursor",
        ),
    }
    assert answer["query"] == three_kinds and answer["search_mode"] in {"bm25", "hybrid"}
    for result in answer["results"]:
        assert set(result) == {
            "id", "uri", "type", "title", "status", "parent_id", "snippet", "score", "content"
        }  # fmt: skip
        assert isinstance(result["snippet"]["field"], str) and isinstance(
            result["snippet"]["text"], str
        )
        assert all(isinstance(name, str) for name in result["snippet"]["matched_fields"])


def test_an_explanation_is_the_same_through_both(doors: Doors, three_kinds: str) -> None:
    answer = doors.search(three_kinds, explain=True)
    assert answer["explain"]["searched"] == three_kinds and all(
        "explain" in one for one in answer["results"]
    )


# Edges


@pytest.mark.parametrize("q", ["", "   ", "!?…"])
def test_a_query_without_words_finds_nothing(doors: Doors, three_kinds: str, q: str) -> None:
    answer = doors.search(q)
    assert answer["results"] == [] and answer["total"] == 0 and answer["query"] == q


def test_things_with_nothing_but_a_title_are_found(doors: Doors, word: str) -> None:
    doors.task(title=word)
    doors.file(f"{word}.txt", "")
    assert len(doors.search(word)["results"]) == 2


def test_filters_narrow_in_the_same_way(doors: Doors, word: str) -> None:
    epic = doors.site.elsewhere.create(kind="epic", values={"title": "Home"}, by="alice")
    mine = doors.task(
        title=f"{word} one", assignee="alice", labels=["a,b"], epic_id=epic, status="blocked"
    )
    doors.task(title=f"{word} two")
    for narrowed in (
        {"assignee": "alice"},
        {"parent_id": epic},
        {"status": ["blocked", "done"]},
        {"label": ["a,b"]},
    ):
        answer = doors.search(word, **narrowed)
        assert [result["id"] for result in answer["results"]] == [mine] and answer["total"] == 1, (
            narrowed
        )


def test_a_page_goes_on_where_the_one_before_ended(doors: Doors, word: str) -> None:
    refs = [doors.task(title=f"{word} {n}") for n in range(5)]
    seen, cursor = [], ""
    while cursor is not None:
        answer = doors.search(word, limit=2, cursor=cursor)
        seen += [result["id"] for result in answer["results"]]
        cursor = answer["next_cursor"]
        assert answer["total"] == 5
    assert sorted(seen) == refs


def test_a_page_of_contents_ends_within_its_budget_and_goes_on(doors: Doors, word: str) -> None:
    for _ in range(3):
        doors.task(title=word, description="long " * 1000)
    first = doors.search(word, include_content=True, max_tokens=4000)
    assert len(first["results"]) == 1 and first["total"] == 3
    second = doors.search(word, include_content=True, max_tokens=4000, cursor=first["next_cursor"])
    assert first["results"][0]["id"] != second["results"][0]["id"]
    [cut] = doors.search(word, include_content=True, max_tokens=1000)["results"]
    assert len(cut["content"]) + cut["truncated"]["characters_left"] == 5000


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"color": "red"},
            {"limit": 0},
            {"limit": 101},
            {"limit": "x"},
            {"types": ["no"]},
            {"status": ["no"]},
        ),
        *(
            {"sort": "no"},
            {"explain": "maybe"},
            {"cursor": "no"},
            {"parent_id": "no"},
            {"max_tokens": 1},
        ),
    ],
)
def test_what_is_not_known_is_refused_by_name(doors: Doors, wrong: dict[str, Any]) -> None:
    response, called = doors.rest("x", **wrong), doors.mcp("x", **wrong)
    assert response.status_code == 400 and called["isError"]
    for error in (response.json()["error"], called["structuredContent"]["error"]):
        assert error["code"] == "validation_failed" and error["details"]["field"] == next(
            iter(wrong)
        )


def test_a_query_is_needed(doors: Doors) -> None:
    assert doors.http.get(f"{doors.site.url}/api/v1/search/").status_code == 400
    call = {"name": "backlog_search", "arguments": {}}
    assert modern(doors.site, doors.http, "tools/call", call).json()["result"]["isError"]


def test_anonymous_gets_no_answer(site: Site) -> None:
    with site.client(None) as http:
        doors = Doors(site, http)
        assert doors.rest("x").status_code == 401
        assert modern(site, http, "tools/call", {"name": "backlog_search"}).status_code == 401


def test_who_has_no_role_gets_an_empty_one(site: Site, tokens: Tokens, three_kinds: str) -> None:
    with site.client(tokens.mallory) as http:
        answer = Doors(site, http).search(three_kinds)
    assert answer["results"] == [] and answer["total"] == 0


def test_lists_are_given_with_commas_or_again(doors: Doors, three_kinds: str) -> None:
    url = f"{doors.site.url}/api/v1/search/?q={three_kinds}"
    one = doors.http.get(f"{url}&types=task,epic&status=open,done").json()
    other = doors.http.get(f"{url}&types=task&types=epic&status=open&status=done").json()
    assert one["total"] == 2 and one == other
