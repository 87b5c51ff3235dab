"""Enforce the architecture rules, and test each rule with code that it must reject."""

import ast
import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.architecture import rules
from tests.architecture.rules import ADAPTERS, ROOT, sources

MAX_LINES = 450
ONE_SETTINGS_FILE = "backlog_site/settings.py"
# Where rows are written, and how. Any other module goes through writing.py.
ALLOWED_WRITES: dict[str, set[str]] = {
    # the write path itself: the row, its related rows, its revision, its change, its key
    "resources_app/writing/session.py": {"save", "update"},
    "resources_app/writing/write_path.py": {"update", "delete"},
    "resources_app/writing/relations.py": {"bulk_create", "update", "delete"},
    "resources_app/querying/counters.py": {"bulk_create", "delete"},
    "resources_app/history/revisions.py": {"bulk_create"},
    "resources_app/history/change_log.py": {"bulk_create"},
    "resources_app/writing/batches.py": {"create", "save"},
    # files: folders exist while they are not empty; bytes and derived metadata have no history
    "resources_app/files/folders.py": {"get_or_create", "create", "update", "delete"},
    "resources_app/writing/stored_files.py": {"update"},
    # unversioned rows
    "resources_app/jobs/queue.py": {"save", "update"},
    "resources_app/identity/tokens.py": {"create", "update"},
    "resources_app/jobs/cleanup.py": {"delete"},
    "resources_app/identity/oauth_grants.py": {"delete"},
    "resources_app/identity/service_accounts.py": {"create", "save"},
    # the IntelligenceBank mirror: rows that can be read again, state of runs, sealed secrets
    "resources_app/intelligencebank/connections.py": {"save"},
    "resources_app/intelligencebank/demo.py": {"get_or_create", "save"},
    "resources_app/intelligencebank/linking.py": {"get_or_create", "save", "update", "delete"},
    "resources_app/intelligencebank/entitlements.py": {"bulk_create", "update", "delete"},
    "resources_app/intelligencebank/sync/runs.py": {"create", "save", "update"},
    "resources_app/intelligencebank/sync/crawl.py": {"update"},
    "resources_app/intelligencebank/sync/pages.py": {"bulk_create", "update"},
    "resources_app/intelligencebank/sync/stages.py": {"update"},
    "resources_app/intelligencebank/sync/completeness.py": {"update"},
    "resources_app/intelligencebank/sync/sweeping.py": {"update", "delete"},
    "resources_app/intelligencebank/sync/tree.py": {"bulk_update", "update"},
    "resources_app/intelligencebank/sync/refreshing.py": {"save"},
    "resources_app/intelligencebank/sync/working.py": {"save"},
    # users and groups, which belong to Django
    "resources_app/demo/fill.py": {"get_or_create"},
    "resources_app/interchange/import_files.py": {"get_or_create"},
    "resources_app/interchange/import_items.py": {"get_or_create"},
    # a restored database
    "backlog_site/operations/backups.py": {"bulk_create"},
    "backlog_site/accounts/sessions.py": {"delete"},
    # the search index, which can be rebuilt
    "search_app/semantic/worker.py": {"update", "delete", "bulk_create"},
    "search_app/index/write.py": {"delete"},
    "search_app/index/rebuild.py": {"save", "update", "delete"},
}
# The edges of processes, where an unexpected error becomes a response or a record instead of a
# crash.
EDGES = {
    "resources_app/jobs/queue.py",
    "backlog_site/mcp/legacy.py",
    "backlog_site/mcp/toolset.py",
    "backlog_site/mcp/transport.py",
}


@cache
def trees() -> dict[str, ast.Module]:
    return {name: ast.parse(text) for name, text in sources()}


def offences(
    rule: Callable[[ast.AST], list[str]], within: str | tuple[str, ...] = ""
) -> dict[str, list[str]]:
    found = {name: rule(tree) for name, tree in trees().items() if name.startswith(within)}
    return {name: wrong for name, wrong in found.items() if wrong}


def test_there_are_modules_to_judge() -> None:
    names = set(trees())
    assert {
        "resources_app/writing/write_path.py",
        "backlog_site/settings.py",
        "search_app/apps.py",
    } <= names
    assert not any("migrations" in name for name in names)


def test_adapters_ask_the_domain_and_not_the_database() -> None:
    found = offences(rules.queries_in_adapter, ADAPTERS)
    assert {
        name: wrong for name, wrong in found.items() if not name.startswith(rules.VIEW_QUERIES)
    } == {}


def test_rows_are_written_only_where_it_is_said() -> None:
    written = {name: found for name, tree in trees().items() if (found := rules.orm_writes(tree))}
    undeclared = {name: found - ALLOWED_WRITES.get(name, set()) for name, found in written.items()}
    assert {name: found for name, found in undeclared.items() if found} == {}


def test_the_list_of_writers_names_nothing_that_is_gone() -> None:
    written = {name: rules.orm_writes(tree) for name, tree in trees().items()}
    stale = {name: methods - written.get(name, set()) for name, methods in ALLOWED_WRITES.items()}
    assert {name: methods for name, methods in stale.items() if methods} == {}


def test_no_model_signals() -> None:
    assert offences(rules.model_signals) == {}


def test_any_error_is_caught_only_at_the_edge_of_a_process() -> None:
    assert set(offences(rules.broad_excepts)) == EDGES


def test_nothing_is_pickled() -> None:
    assert offences(rules.pickles) == {}


def test_rows_do_nothing_of_their_own_when_saved() -> None:
    assert offences(rules.logic_in_save) == {}


def test_names_say_what_things_are() -> None:
    found = {name: rules.unclear_names(name, tree) for name, tree in trees().items()}
    assert {name: unclear for name, unclear in found.items() if unclear} == {}


def test_files_are_short() -> None:
    lengths = {name: len(text.splitlines()) for name, text in sources()}
    too_long = {name for name, lines in lengths.items() if lines > MAX_LINES}
    assert too_long <= {ONE_SETTINGS_FILE}


def test_functions_are_short() -> None:
    lengths = [length for tree in trees().values() for length in rules.function_lengths(tree)]
    assert statistics.median(lengths) <= 12
    assert statistics.quantiles(lengths, n=10)[-1] <= 30


def test_the_top_level_has_the_packages_of_the_house_and_no_others() -> None:
    packages = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    assert {"backlog_site", "search_app", "resources_app"} <= packages
    assert packages <= {"backlog_site", "search_app", "resources_app", "tests", "bench"}


# Each rule must be able to reject code.


def judged(rule: Callable[..., Any], code: str) -> Any:
    return rule(ast.parse(code))


@pytest.mark.parametrize(
    "code",
    [
        "from django.db.models import Q",
        "from django.db.models.functions import Lower",
        "import django.db.models",
        "from django.db import models",
        "Task.objects.filter(pk=1)",
        "type(task)._default_manager.get(pk=1)",
        "connection.cursor()",
    ],
)
def test_a_query_in_an_adapter_is_refused(code: str) -> None:
    assert judged(rules.queries_in_adapter, code)


@pytest.mark.parametrize(
    "code",
    [
        "from resources_app.models import Task\ndef shown(task: Task) -> str: return task.title",
        "from django.db import OperationalError, close_old_connections",
        "from django.contrib.auth.models import User",
        "request.params.cursor",
    ],
)
def test_types_and_errors_in_an_adapter_are_accepted(code: str) -> None:
    assert judged(rules.queries_in_adapter, code) == []


@pytest.mark.parametrize(
    ("code", "method"),
    [
        ("task.save()", "save"),
        ("task.save(update_fields=['title'])", "save"),
        ("Task.objects.filter(pk=1).update(title='x')", "update"),
        ("rows.update(title='x')", "update"),
        ("rows.update(**columns)", "update"),
        ("Task.objects.create(title='x')", "create"),
        ("Task.objects.get_or_create(title='x')", "get_or_create"),
        ("Task._base_manager.bulk_create(rows)", "bulk_create"),
        ("Task.objects.bulk_update(rows, ['title'])", "bulk_update"),
        ("task.delete()", "delete"),
        ("Task.objects.all().delete()", "delete"),
    ],
)
def test_a_write_past_the_write_path_is_noticed(code: str, method: str) -> None:
    assert judged(rules.orm_writes, code) == {method}


@pytest.mark.parametrize(
    "code",
    [
        "session.save(thing, edit, uri=uri, action='update')",
        "settings.update({'a': 1})",
        "digest.update(chunk)",
        "tokens.create(user, name)",
        "redis.delete('key')",
    ],
)
def test_what_only_looks_like_a_write_is_not_noticed(code: str) -> None:
    assert judged(rules.orm_writes, code) == set()


@pytest.mark.parametrize(
    "code",
    [
        "from django.db.models.signals import post_save",
        "from django.db.models import signals",
        "import django.db.models.signals",
        "from django.dispatch import receiver",
    ],
)
def test_a_model_signal_is_refused(code: str) -> None:
    assert judged(rules.model_signals, code)


@pytest.mark.parametrize("caught", ["", " Exception", " BaseException", " (ValueError, Exception)"])
def test_catching_everything_is_refused(caught: str) -> None:
    assert judged(rules.broad_excepts, f"try:\n    pass\nexcept{caught}:\n    pass")
    assert judged(rules.broad_excepts, "try:\n    pass\nexcept ValueError:\n    pass") == []


@pytest.mark.parametrize(
    "code", ["import pickle", "from pickle import loads", "import shelve", "SERIALIZER = 'pickle'"]
)
def test_a_pickle_is_refused(code: str) -> None:
    assert judged(rules.pickles, code)


def test_logic_in_save_is_refused() -> None:
    assert judged(rules.logic_in_save, "class Task(models.Model):\n    def save(self): pass") == [
        "Task.save"
    ]
    assert judged(rules.logic_in_save, "class Session:\n    def save(self): pass") == []


@pytest.mark.parametrize("name", ["TaskHelper", "date_helper", "parse_utils", "processor"])
def test_a_name_that_says_nothing_is_refused(name: str) -> None:
    assert rules.unclear_names("resources_app/fine.py", ast.parse(f"def {name}(): pass")) == [name]
    assert rules.unclear_names(f"resources_app/{name}.py", ast.parse("")) == [name]


@pytest.mark.parametrize("name", ["metadata", "process", "data_folder", "utility"])
def test_a_word_inside_another_word_is_no_offence(name: str) -> None:
    assert rules.unclear_names("resources_app/fine.py", ast.parse(f"def {name}(): pass")) == []


def test_the_length_of_a_function_counts_all_its_lines() -> None:
    assert judged(
        rules.function_lengths, "def one():\n    pass\n\nasync def two():\n    a = 1\n    return a"
    ) == [2, 3]
