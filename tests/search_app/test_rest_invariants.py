"""The 27 invariants of the unified search, through REST."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User

from resources_app.storing import create_resource
from tests.api.clients import ApiClient, error_of
from tests.factories import make_epic, make_task, system


@pytest.fixture
def client(bob: User) -> ApiClient:
    return ApiClient(bob)


@pytest.fixture
def three_kinds(db: None) -> None:
    make_task(title="Authentication of users", description="Login with a token")
    make_epic(title="Authentication epic", description="Everything about login")
    create_resource(system(), "resources/auth-guide.md", "# Guide\n\nHow authentication works here.")


def search(client: ApiClient, q: str, **parameters: Any) -> dict[str, Any]:
    response = client.get(f"/api/v1/search/?{urlencode({'q': q, **parameters})}")
    assert response.status_code == 200, response.content
    return dict(response.json())


def snippet_of(client: ApiClient, q: str) -> dict[str, Any]:
    return dict(search(client, q)["results"][0]["snippet"])


# Every result has a snippet


@pytest.mark.parametrize("kind", ["task", "epic", "resource"])
def test_results_of_each_kind_have_a_whole_snippet(client: ApiClient, three_kinds: None, kind: str) -> None:
    [result] = search(client, "authentication", types=kind)["results"]
    assert result["snippet"]["field"] and result["snippet"]["text"] and result["snippet"]["matched_fields"]


def test_every_result_of_a_mixed_answer_has_a_snippet(client: ApiClient, three_kinds: None) -> None:
    results = search(client, "authentication")["results"]
    assert len(results) == 3 and all(result["snippet"]["text"] for result in results)


# What a snippet shows


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("title", {"title": "A pelican"}),
        ("description", {"description": "There is a pelican"}),
        ("evidence", {"evidence": ["first", "a pelican seen"]}),
        ("blocked_reason", {"blocked_reason": ["waiting for the pelican"], "status": "blocked"}),
        ("references", {"references": [{"url": "https://example.org", "title": "The pelican"}]}),
    ],
)
def test_a_snippet_comes_from_the_field_that_matched(client: ApiClient, field: str, values: dict[str, Any]) -> None:
    make_task(**values)
    snippet = snippet_of(client, "pelican")
    assert snippet["field"] == field and "pelican" in snippet["text"] and snippet["matched_fields"] == [field]


def test_a_snippet_of_a_resource_comes_from_its_content(client: ApiClient, three_kinds: None) -> None:
    snippet = search(client, "works here", types="resource")["results"][0]["snippet"]
    assert snippet["field"] == "content" and "works here" in snippet["text"]


def test_a_snippet_names_every_field_that_matched(client: ApiClient) -> None:
    make_task(title="Pelican", description="pelican", evidence=["pelican"])
    assert snippet_of(client, "pelican")["matched_fields"] == ["title", "description", "evidence"]


def test_a_snippet_of_a_long_text_is_cut_around_the_match(client: ApiClient) -> None:
    make_task(description="word " * 500 + "pelican " + "word " * 500)
    snippet = snippet_of(client, "pelican")
    assert "pelican" in snippet["text"] and len(snippet["text"]) <= 122
    assert snippet["text"].startswith("…") and snippet["text"].endswith("…")


def test_a_snippet_is_there_although_only_the_id_matched(client: ApiClient) -> None:
    make_task(title="Quiet")
    assert snippet_of(client, "TASK-1") == {
        "field": "id",
        "text": "TASK-0001",
        "matched_fields": ["id"],
        "highlights": [[0, 9]],
    }


def test_a_snippet_is_plain_text(client: ApiClient) -> None:
    make_task(description="# The **pelican** [flies](https://example.org)\n\n<b>high</b>")
    assert snippet_of(client, "pelican")["text"] == "The pelican flies high"


# Types


@pytest.mark.parametrize("kind", ["task", "epic", "resource"])
def test_types_narrow(client: ApiClient, three_kinds: None, kind: str) -> None:
    answer = search(client, "authentication", types=kind)
    assert [result["type"] for result in answer["results"]] == [kind] and answer["total"] == 1


def test_without_types_every_kind_is_found(client: ApiClient, three_kinds: None) -> None:
    assert {result["type"] for result in search(client, "authentication")["results"]} == {"task", "epic", "resource"}


# Sorting


def test_recent_is_by_the_last_change(client: ApiClient) -> None:
    refs = [make_task(title="pelican " * (4 - n)).ref for n in range(3)]
    assert [result["id"] for result in search(client, "pelican", sort="recent")["results"]] == refs[::-1]


def test_relevant_is_by_score(client: ApiClient) -> None:
    make_task(title="Quiet", description="one pelican among many other words")
    make_task(title="Pelican")
    scores = [result["score"] for result in search(client, "pelican", include_scores="true")["results"]]
    assert len(scores) == 2 and scores == sorted(scores, reverse=True) and scores[0] > scores[1]


# The same again


def test_the_same_query_gives_the_same_answer(client: ApiClient, three_kinds: None) -> None:
    assert search(client, "authentication login") == search(client, "authentication login")


def test_the_same_text_gives_the_same_snippet(client: ApiClient) -> None:
    for _ in range(2):
        make_task(title="Quiet", description="a pelican in a text")
    first, second = search(client, "pelican")["results"]
    assert first["snippet"] == second["snippet"]


# The shape


def test_the_answer_has_the_contracts_shape(client: ApiClient, three_kinds: None) -> None:
    answer = search(client, "authentication", include_scores="true", include_content="true")
    assert set(answer) == {"results", "total", "query", "search_mode", "next_cursor"}
    assert answer["query"] == "authentication" and answer["search_mode"] in {"bm25", "hybrid"}
    for result in answer["results"]:
        assert set(result) == {
            "id", "uri", "type", "title", "status", "parent_id", "snippet", "score", "content"
        }  # fmt: skip
        assert isinstance(result["snippet"]["field"], str) and isinstance(result["snippet"]["text"], str)
        assert all(isinstance(name, str) for name in result["snippet"]["matched_fields"])


# Edges


@pytest.mark.parametrize("q", ["", "   ", "!?…"])
def test_a_query_without_words_finds_nothing(client: ApiClient, three_kinds: None, q: str) -> None:
    answer = search(client, q)
    assert answer["results"] == [] and answer["total"] == 0 and answer["query"] == q


def test_things_with_nothing_but_a_title_are_found(client: ApiClient) -> None:
    make_task(title="Pelican")
    create_resource(system(), "resources/pelican.txt", "")
    assert len(search(client, "pelican")["results"]) == 2


@pytest.mark.parametrize("query", ["", "query=x", "q=x&color=red", "q=x&limit=0", "q=x&limit=x", "q=x&explain=maybe"])
def test_what_is_not_known_is_refused_by_name(client: ApiClient, query: str) -> None:
    response = client.get(f"/api/v1/search/?{query}")
    assert response.status_code == 400 and error_of(response)["code"] == "validation_failed"


def test_anonymous_gets_no_answer(db: None) -> None:
    assert ApiClient().get("/api/v1/search/?q=x").status_code == 401


def test_who_lost_the_role_gets_an_empty_one(bob: User, client: ApiClient, three_kinds: None) -> None:
    bob.groups.clear()
    answer = search(client, "authentication")
    assert answer["results"] == [] and answer["total"] == 0


def test_lists_are_given_with_commas_or_again(client: ApiClient, three_kinds: None) -> None:
    one = client.get("/api/v1/search/?q=authentication&types=task,epic&status=open,done").json()
    other = client.get("/api/v1/search/?q=authentication&types=task&types=epic&status=open&status=done").json()
    assert one["total"] == 2 and one == other
