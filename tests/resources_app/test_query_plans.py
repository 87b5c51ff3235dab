"""Test that at 100,000 tasks a list reads one page: filters and sorts use an index, nothing is
sorted or scanned.
"""

import json
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import QuerySet

from resources_app.models import Task
from resources_app.querying.queries import _after, _order, fetch_page, parse_query, select
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


def page_of(user: User, query_string: str) -> QuerySet[Task]:
    pairs = [tuple(pair.split("=", 1)) for pair in query_string.split("&") if pair]
    query = parse_query(Task, pairs)  # type: ignore[arg-type]
    rows = Task.objects.visible_to(user).live()
    ordered = _order(select(rows, query), query)
    return (_after(ordered, query) if query.cursor else ordered)[: query.limit + 1]


def page_plan(user: User, query_string: str) -> str:
    return str(page_of(user, query_string).explain())


def plan_for_any_value(user: User, query_string: str) -> str:
    """Return the generic plan that PostgreSQL caches for a prepared statement of
    resources_app.database.prepared.
    """
    sql, params = page_of(user, query_string).query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(
            "EXPLAIN (GENERIC_PLAN) "
            + sql % tuple(f"${place}" for place in range(1, len(params) + 1))
        )
        return "\n".join(line for (line,) in cursor.fetchall())


SORTS = ["id", "title", "status", "priority", "due_date", "created_at", "updated_at", "estimate"]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_every_sort_walks_an_index(many_tasks: None, db: None, sort: str, order: str) -> None:
    plan = page_plan(make_user("bob", "viewer"), f"sort={sort}&order={order}")
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan


@pytest.mark.parametrize("sort", SORTS)
def test_a_page_deep_inside_starts_at_its_place_in_the_index(
    many_tasks: None, db: None, sort: str
) -> None:
    bob = make_user("bob", "viewer")
    query = parse_query(Task, [("sort", sort), ("offset", "70000"), ("limit", "10")])
    cursor = fetch_page(Task.objects.visible_to(bob).live(), query).next_cursor
    plan = page_plan(bob, f"sort={sort}&cursor={cursor}")
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan
    assert "SEARCH" in plan if connection.vendor == "sqlite" else "Index Cond" in plan, plan


@pytest.mark.parametrize(
    "condition", ["status=open", "epic_id=EPIC-0003", "priority=urgent", "assignee=owner"]
)
def test_filters_use_their_index_and_need_no_sort(
    many_tasks: None, db: None, condition: str
) -> None:
    plan = page_plan(make_user("bob", "viewer"), condition)
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan
    assert "SEARCH" in plan if connection.vendor == "sqlite" else "Index" in plan, plan


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite keeps no plan for any value")
@pytest.mark.parametrize(
    "condition", ["", "status=open", "priority=urgent", "status=open&priority=high"]
)
def test_the_plan_for_any_value_walks_an_index_too(
    many_tasks: None, db: None, condition: str
) -> None:
    plan = plan_for_any_value(make_user("bob", "viewer"), condition)
    assert (
        "Sort" not in plan and "Seq Scan on resources_app_task " not in plan and "Index" in plan
    ), plan


def test_a_label_is_found_through_its_rows(many_tasks: None, db: None) -> None:
    plan = page_plan(make_user("bob", "viewer"), "label=label-7")
    assert (
        "INDEX" in plan.upper()
        and "tasklabel" in plan
        and "Seq Scan on resources_app_task " not in plan
    ), plan


def test_what_depends_on_a_task_is_found_through_its_rows(many_tasks: None, db: None) -> None:
    plan = page_plan(make_user("bob", "viewer"), "depends_on=TASK-0007")
    assert (
        "INDEX" in plan.upper()
        and "taskdependency" in plan
        and "Seq Scan on resources_app_task " not in plan
    ), plan


@pytest.mark.parametrize(
    "condition", ["created_at>2101-01-01", "updated_at<=2001-01-01", "created_at:today"]
)
def test_a_range_of_days_is_read_from_its_index(many_tasks: None, db: None, condition: str) -> None:
    name = condition[:10]
    plan = page_plan(make_user("bob", "viewer"), f"filter={condition}&sort={name}")
    assert "USE TEMP B-TREE" not in plan and "Sort" not in plan, plan
    assert "SEARCH" in plan if connection.vendor == "sqlite" else "Index Cond" in plan, plan


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
