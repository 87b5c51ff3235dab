"""Test that a search takes a fixed number of queries, however many match."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from search_app.context import build_context
from search_app.search import search_unified
from tests.factories import make_task


def queries(user: User, text: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        search_unified(User.objects.get(pk=user.pk), text)
    return len(captured)


def test_more_matches_cost_no_more_queries(bob: User) -> None:
    make_task(title="needle")
    few = queries(bob, "needle")
    for n in range(30):
        make_task(title=f"needle {n}")
    assert queries(bob, "needle") == few <= 13  # one of them asks whether there are vectors


def test_very_many_matches_cost_a_few_more(bob: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_app.candidates.WINDOW", 5)
    for n in range(30):
        make_task(title=f"needle {n}")
    assert queries(bob, "needle") <= 16


def test_a_context_costs_no_more_queries_the_more_a_text_names(bob: User) -> None:
    others = [make_task(title=f"Neighbour {n}").ref for n in range(12)]
    costs = []
    for named in (others[:2], others):
        focus = make_task(title="Focus", description=" ".join(named))
        with CaptureQueriesContext(connection) as captured:
            roles = [part["role"] for part in build_context(bob, id=focus.ref)["parts"]]
        assert roles.count("reference") == len(named)
        costs.append(len(captured))
    assert costs[0] == costs[1]
