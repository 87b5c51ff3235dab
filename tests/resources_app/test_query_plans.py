"""At 100,000 tasks a list reads one page: each filter and sort walks an index, nothing is sorted or scanned."""

import json
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from resources_app.models import Task
from resources_app.queries import _after, _order, fetch_page, parse_query, select
from tests.factories import make_user
from tests.volume import fill_tasks

TASKS = 100_000
PAGE = 50


@pytest.fixture(scope="module")
def many_tasks(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    with django_db_blocker.unblock(), transaction.atomic():  # type: ignore[attr-defined]
        fill_tasks(TASKS)
        yield
        transaction.set_rollback(True)


def page_plan(user: User, query_string: str) -> str:
    pairs = [tuple(pair.split("=", 1)) for pair in query_string.split("&") if pair]
    query = parse_query(Task, pairs)  # type: ignore[arg-type]
    rows = Task.objects.visible_to(user).live()
    ordered = _order(select(rows, query), query)
    return str((_after(ordered, query) if query.cursor else ordered)[: query.limit + 1].explain())


SORTS = ["id", "title", "status", "priority", "due_date", "created_at", "updated_at"]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_every_sort_walks_an_index(many_tasks: None, db: None, sort: str, order: str) -> None:
    plan = page_plan(make_user("bob", "viewer"), f"sort={sort}&order={order}")
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan


@pytest.mark.parametrize("sort", SORTS)
def test_a_page_deep_inside_starts_at_its_place_in_the_index(many_tasks: None, db: None, sort: str) -> None:
    bob = make_user("bob", "viewer")
    query = parse_query(Task, [("sort", sort), ("offset", "70000"), ("limit", "10")])
    cursor = fetch_page(Task.objects.visible_to(bob).live(), query).next_cursor
    plan = page_plan(bob, f"sort={sort}&cursor={cursor}")
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan
    assert "SEARCH" in plan if connection.vendor == "sqlite" else "Index Cond" in plan, plan


@pytest.mark.parametrize("condition", ["status=open", "epic_id=EPIC-0003", "priority=urgent", "assignee=owner"])
def test_filters_use_their_index_and_need_no_sort(many_tasks: None, db: None, condition: str) -> None:
    plan = page_plan(make_user("bob", "viewer"), condition)
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan
    assert "SEARCH" in plan if connection.vendor == "sqlite" else "Index" in plan, plan


def test_a_label_is_found_through_its_rows(many_tasks: None, db: None) -> None:
    plan = page_plan(make_user("bob", "viewer"), "label=label-7")
    assert "INDEX" in plan.upper() and "tasklabel" in plan and "Seq Scan on resources_app_task " not in plan, plan


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite counts no rows per plan node")
def test_postgresql_touches_only_a_page_of_rows(many_tasks: None, db: None) -> None:
    bob = make_user("bob", "viewer")
    rows = Task.objects.visible_to(bob).live()
    ordered = _order(rows, parse_query(Task, []))[: PAGE + 1]
    [plan] = json.loads(ordered.explain(format="json", analyze=True))
    assert _rows_read(plan["Plan"]) <= 3 * (PAGE + 1)


def _rows_read(node: dict[str, object]) -> float:
    own = float(node["Actual Rows"]) * float(node["Actual Loops"])  # type: ignore[arg-type]
    return own + sum(_rows_read(child) for child in node.get("Plans", []))  # type: ignore[union-attr]
