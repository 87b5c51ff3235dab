"""Test that any typed text gets an answer: none of it is database syntax."""

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from search_app.search import search_unified
from tests.factories import make_task

HOSTILE = [
    '"',
    "'",
    "\\",
    "title:",
    "NEAR(a b)",
    "a*",
    "^a",
    "a AND (b",
    "' | !x & (",
    "a:*B",
    "{title} : x",
    "--",
    "%s %",
]


@pytest.fixture
def some_tasks(db: None) -> None:
    for title in ("Fix the login", 'Say "hello" AND go', "数据库 title: NEAR", "it's 100% a:*"):
        make_task(title=title)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=80) | st.lists(st.sampled_from(HOSTILE), max_size=6).map(" ".join))
@example("\x00")
@example("\ud800 login")
@example('"')
@example("ﷺ ½ ⁄ ´")
def test_any_text_gives_an_answer(some_tasks: None, bob: User, text: str) -> None:
    answer = search_unified(bob, text)
    assert answer["total"] >= len(answer["results"])
    assert all(result["snippet"]["text"].strip() for result in answer["results"])
    assert answer == search_unified(bob, text)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_looks_like_syntax_is_text(some_tasks: None, bob: User, hostile: str) -> None:
    assert search_unified(bob, f"login {hostile}")["results"][0]["title"] == "Fix the login"
