"""Test that a query selects an item by its row exactly when it selects it by its document."""

import datetime
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources_app.errors import ValidationFailed
from resources_app.history.documents import uri_of
from resources_app.history.revisions import document_at
from resources_app.models import Epic, Task
from resources_app.querying.queries import (
    CollectionQuery,
    may_select,
    parse_query,
    query_of,
    select,
)
from resources_app.querying.snapshots import Snapshot
from resources_app.vocabulary import Priority, Status
from resources_app.writing import write_path
from tests.factories import make_epic, make_task, make_user, system

pytestmark = pytest.mark.django_db

Model = type[Task] | type[Epic]
Draft = dict[str, Any]

ITEMS = 3
QUERIES = 20
TASKS_ONLY = {"epic_id", "parent_id", "depends_on", "ready"}
# Letters whose cases differ between scripts and databases, and characters that LIKE, regular
# expressions and the filter syntax treat specially.
LETTERS = 'aAbIisSkKéÉßẞяЯσΣςµıİſ\u212a%_\\*.(,:" 1'
WORDS = ["login", "Logins", "logging", "API", "the", "Straße", "école", "数据库", "42", "TASK-0001"]
DAYS = ["2026-01-30", "2026-01-31", "2026-02-01", "today"]
TIMES = ["2026-01-30T23:59:59Z", "2026-01-31T00:00:00Z", "2026-01-31T12:00:00+05:00"]

texts = st.text(LETTERS, max_size=6) | st.lists(st.sampled_from(WORDS), max_size=3).map(" ".join)
parts = st.text(LETTERS, max_size=2) | st.sampled_from(["LOG", "STRASSE", "éco", ""])
words = st.lists(st.sampled_from(WORDS), max_size=2)
people = st.sampled_from(["alice", "bob"])
labels = st.sampled_from(["api", "API", "a b", "é"])
epics = st.sampled_from(["EPIC-0001", "EPIC-0002"])
nothing = st.just("")
moments = st.sampled_from(TIMES).map(datetime.datetime.fromisoformat)


def refs(model: Model) -> st.SearchStrategy[str]:
    return st.sampled_from([model.make_ref(number) for number in range(1, ITEMS + 1)])


def fields(model: Model) -> dict[str, st.SearchStrategy[Any]]:
    shared = {
        "title": texts.filter(str.strip),
        "description": texts,
        "status": st.sampled_from(Status.labels),
        "priority": st.sampled_from(Priority.labels),
        "labels": st.lists(labels, max_size=2),
        "assignee": st.none() | people,
        "due_date": st.none() | st.sampled_from(DAYS[:3]),
        "evidence": words,
        "references": st.lists(st.sampled_from(["https://a.example/login", "API"]), max_size=1),
    }
    if model is Epic:
        return shared
    return shared | {"epic_id": st.none() | epics, "depends_on": st.lists(refs(Task), max_size=2)}


def filters(model: Model) -> dict[str, tuple[str, st.SearchStrategy[str]]]:
    """Return the operators and values of each filter."""
    every = {
        "status": (": !=", st.sampled_from(Status.labels)),
        "priority": (": != > >= < <=", st.sampled_from(Priority.labels)),
        "epic_id": (": !=", epics | nothing),
        "parent_id": (": !=", epics | nothing),
        "assignee": (": !=", people | nothing | st.just("@me")),
        "label": (": !=", labels | nothing),
        "id": (": !=", refs(model)),
        "title": (": != ~", texts | parts),
        "description": (": != ~", texts | parts),
        "depends_on": (": !=", refs(Task) | nothing),
        "due_date": (": != > >= < <=", st.sampled_from([*DAYS, "-1d", "+7d"])),
        "created_at": (": != > >= < <=", st.sampled_from([*DAYS, *TIMES])),
        "updated_at": (": != > >= < <=", st.sampled_from([*DAYS, *TIMES])),
    }
    return {name: rest for name, rest in every.items() if model is Task or name not in TASKS_ONLY}


def clause(model: Model) -> st.SearchStrategy[str]:
    def written(name: str) -> st.SearchStrategy[str]:
        operators, values = filters(model)[name]
        return st.builds(quoted, st.just(name), st.sampled_from(operators.split()), values)

    return st.sampled_from(sorted(filters(model))).flatmap(written)


def quoted(name: str, operator: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}{operator}"{escaped}"'


def parameter(model: Model) -> st.SearchStrategy[tuple[str, str]]:
    names = st.sampled_from(sorted(filters(model)))
    return names.flatmap(lambda name: st.tuples(st.just(name), filters(model)[name][1]))


def queries(model: Model) -> st.SearchStrategy[list[tuple[str, str]]]:
    kinds: dict[str, st.SearchStrategy[tuple[str, str]]] = {
        "filter": st.tuples(st.just("filter"), clause(model)),
        "parameter": parameter(model),
        "search": st.tuples(st.just("search"), words.map(" ".join)),
    }
    if model is Task:
        kinds["ready"] = st.tuples(st.just("ready"), st.sampled_from(["true", "false"]))
    # Most queries are one comparison, so that one cannot hide another.
    often = st.sampled_from([*["filter"] * 4, *kinds])
    pair = often.flatmap(lambda kind: kinds[kind])
    return st.lists(pair, min_size=1, max_size=2, unique_by=as_given_once)


def as_given_once(pair: tuple[str, str]) -> tuple[str, ...]:
    """Return what may occur once in a query: a setting by its name, a filter with its value."""
    return pair[:1] if pair[0] in {"ready", "search"} else pair


def drafts(model: Model) -> st.SearchStrategy[list[Draft]]:
    beside = {
        "comments": words,
        "created_at": st.none() | moments,
        "updated_at": st.none() | moments,
    }
    draft = st.fixed_dictionaries(fields(model) | beside)
    return st.lists(draft, min_size=ITEMS, max_size=ITEMS)


def edits(model: Model) -> st.SearchStrategy[list[Draft]]:
    edit = st.fixed_dictionaries({}, optional=fields(model) | {"archived": st.just(True)})
    return st.lists(edit, min_size=ITEMS, max_size=ITEMS)


@contextmanager
def world(model: Model) -> Iterator[User]:
    """Undo everything an example writes, so that its ids are always the same."""
    with transaction.atomic():
        make_user("bob", "editor")
        if model is Task:
            make_epic(), make_epic()
        yield make_user("alice", "editor")
        transaction.set_rollback(True)


def create(model: Model, number: int, draft: Draft) -> int | None:
    """Create an item. Return its number if it is dated, like an imported one."""
    values = without_cycles(number, draft)
    comments = values.pop("comments", ())
    times = {name: values.pop(name, None) for name in ("created_at", "updated_at")}
    item = write_path.create_item(system(), model.KIND, values, **times)
    for body in comments:
        write_path.add_comment(system(), uri_of(item), body)
    return item.pk if times["created_at"] else None


def edit(model: Model, number: int, changed: Draft) -> None:
    values = without_cycles(number, changed)
    archived = values.pop("archived", False)
    uri = uri_of(model.objects.get(pk=number))
    write_path.write(system(), uri, {"type": "merge", "value": values})
    if archived:
        write_path.archive(system(), uri)


def without_cycles(number: int, draft: Draft) -> Draft:
    """Keep the dependencies on items that were created before."""
    earlier = [ref for ref in draft.get("depends_on", ()) if ref < Task.make_ref(number)]
    return draft | ({"depends_on": earlier} if "depends_on" in draft else {})


def versions(model: Model) -> dict[int, int]:
    return dict(model.objects.values_list("pk", "version"))


def snapshots(model: Model, versions: dict[int, int]) -> list[Snapshot]:
    return [
        Snapshot(model, number, version, document_at(model.KIND, number, version))
        for number, version in versions.items()
    ]


def by_row(model: Model, query: CollectionQuery) -> set[int]:
    return set(select(model.objects.all(), query).values_list("pk", flat=True))


def by_document(items: list[Snapshot], query: CollectionQuery) -> set[int]:
    return {item.number for item in items if may_select(query, item)}


@pytest.mark.parametrize("model", [Task, Epic], ids=["tasks", "epics"])
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rows_and_documents_are_selected_alike(model: Model, data: st.DataObject) -> None:
    asked = data.draw(st.lists(queries(model), min_size=QUERIES, max_size=QUERIES))
    made, edited = data.draw(drafts(model)), data.draw(edits(model))
    with world(model) as alice:
        dated = {create(model, number, draft) for number, draft in enumerate(made, 1)}
        parsed = [query_of(alice, model, pairs) for pairs in asked]
        before = versions(model)
        rows_before = [by_row(model, query) for query in parsed]
        items = snapshots(model, before)
        for pairs, query, rows in zip(asked, parsed, rows_before, strict=True):
            assert by_document(items, query) == rows
            # Without a reader @me may be any user.
            assert by_document(items, parse_query(model, pairs)) >= rows
        for number, changed in enumerate(edited, 1):
            edit(model, number, changed)
        items, remembered = snapshots(model, versions(model)), snapshots(model, before)
        for query, rows in zip(parsed, rows_before, strict=True):
            assert by_document(items, query) == by_row(model, query)
            if query.ready is None:  # other tasks decide it
                found = by_document(remembered, query)
                assert found >= rows and found - dated == rows - dated


def test_letters_fold_alike_in_rows_and_documents() -> None:
    for letter in LETTERS.replace(" ", ""):
        make_task(title=f"<{letter}>")
    items = snapshots(Task, versions(Task))
    for letter in LETTERS.replace(" ", ""):
        query = parse_query(Task, [("filter", quoted("title", "~", f"{letter}>"))])
        assert by_document(items, query) == by_row(Task, query) != set(), letter


@pytest.mark.parametrize("operator", [">", ">=", "<", "<="])
def test_an_order_needs_a_value(operator: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        select(Task.objects.all(), parse_query(Task, [("filter", f"due_date{operator}")]))
    assert refused.value.details["field"] == "due_date"
