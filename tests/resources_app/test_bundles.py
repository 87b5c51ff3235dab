"""Test several objects in one answer: within its budget in any script, nothing lost, nothing
truncated silently.
"""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User

from bench.tokens import count_tokens
from resources_app.reading.read_many import read_many
from resources_app.writing.stored_files import create_resource
from search_app.context import build_context
from search_app.search import search_unified
from tests.factories import as_actor, make_task, system, task_uri


def pages(user: User, names: list[str], max_tokens: int) -> list[dict[str, Any]]:
    found, cursor = [], None
    while True:
        page = read_many(as_actor(user), names, max_tokens, cursor)
        assert count_tokens(json.dumps(page, ensure_ascii=False)) <= max_tokens
        found.append(page)
        cursor = page["next_cursor"]
        if cursor is None:
            return found


@pytest.mark.parametrize(
    "text", ["plain words ", "数据库很慢 ", "Задача на завтра ", '"quoted"\n\n', "😀 "]
)
def test_a_text_in_any_script_comes_whole_in_parts_within_the_budget(bob: User, text: str) -> None:
    task = make_task(description=text * 1000)
    answers = pages(bob, [task.ref], 1000)
    assert len(answers) > 1
    assert "".join(page["results"][0]["contents"]["description"] for page in answers) == text * 1000


def test_a_part_fills_its_budget(bob: User) -> None:
    task = make_task(description="line\n" * 4000)
    first = read_many(as_actor(bob), [task.ref], 2000, None)["results"][0]
    assert len(json.dumps(first)) > 2000 * 2


def test_what_is_too_large_and_has_no_text_to_cut_is_named_and_the_rest_follows(bob: User) -> None:
    task, other = make_task(evidence=["x" * 300] * 100), make_task(title="Small")
    [page] = pages(bob, [task.ref, other.ref], 1000)
    assert page["results"][0]["uri"] == task_uri(task)
    assert page["results"][0]["error"]["details"]["field"] == "max_tokens"
    assert page["results"][1]["contents"]["title"] == "Small"


def test_a_binary_file_stays_within_the_budget_as_well(bob: User) -> None:
    create_resource(system(), "resources/noise.bin", bytes(range(256)) * 100)
    answers = pages(bob, ["mcp://backlog/resources/noise.bin"], 4000)
    assert len(answers) > 1


def test_the_ids_that_search_returns_are_read(bob: User) -> None:
    create_resource(system(), "resources/docs/adr 1.md", "A decision about pelicans")
    task = make_task(title="Pelicans")
    for hit in search_unified(bob, "pelicans")["results"]:
        [shown] = read_many(as_actor(bob), [hit["id"]], 2000, None)["results"]
        assert shown["uri"] == hit["uri"] and "error" not in shown
        assert build_context(bob, id=hit["id"])["focus"] == hit["uri"]
    assert task.ref in {hit["id"] for hit in search_unified(bob, "pelicans")["results"]}
