"""Test that both databases give the same order and scores: the suite runs on each."""

import pytest
from django.contrib.auth.models import User

from search_app.search import search_unified
from tests.factories import make_task

CORPUS = (
    (
        "Sign in with OpenID Connect",
        "Users sign in with the account they already have. Tokens expire after an hour.",
    ),
    (
        "Rotate the signing key",
        "The session cookie is signed; rotate its key every month without signing anybody out.",
    ),
    (
        "Nightly import fails",
        "The import of contracts fails at night because the token of the import user has expired.",
    ),
    (
        "Search as you type",
        (
            "The search box finds tasks by prefix, one typo and identifier: getUserById finds user"
            " by id."
        ),
    ),
    (
        "Export large folders",
        "An export of a large folder must not time out. Exports run as a job.",
    ),
    ("Token for agents", "An agent gets a token with a scope. Tokens are shown once."),
    ("数据库 migration", "Move the search index into the database."),
)
EXPECTED = {
    "token expired": [("TASK-0003", 0.6053), ("TASK-0001", 0.5882), ("TASK-0006", 0.5159)],
    "sign": [("TASK-0002", 1.2573), ("TASK-0001", 1.1779)],
    "export job": [("TASK-0005", 0.914)],
    "user by id": [("TASK-0001", 0.9161), ("TASK-0004", 0.7363), ("TASK-0003", 0.2573)],
    "数据库 index": [("TASK-0007", 1.0365)],
    "import of expired tokens at night": [
        ("TASK-0003", 0.9912),
        ("TASK-0001", 0.2255),
        ("TASK-0006", 0.1985),
    ],
}


@pytest.mark.parametrize("query", EXPECTED)
def test_the_order_and_the_scores_are_the_same_everywhere(bob: User, query: str) -> None:
    for title, text in CORPUS:
        make_task(title=title, description=text)
    answer = search_unified(bob, query, include_scores=True)
    ranked = [(result["id"], result["score"]) for result in answer["results"]]
    assert [ref for ref, _ in ranked] == [ref for ref, _ in EXPECTED[query]]
    assert [score for _, score in ranked] == pytest.approx(
        [score for _, score in EXPECTED[query]], abs=0.0005
    )
