"""Test that every imported package is declared with a reason, and that uses of other packages'
private names are listed and still work.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from oauth2_provider import cimd
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from rest_framework.request import Request

from backlog_site.mcp.server import toolsets
from resources_app.models import Task
from tests.architecture.rules import ROOT

PACKAGES = ("backlog_site", "resources_app", "search_app")
# Private by their name, but documented.
DOCUMENTED = {"_meta", "_base_manager", "_default_manager", "_make", "_asdict", "_exit"}
# Our own values, kept on an object of Django.
OURS = {"_backlog_groups", "_before_and_after"}

# Module, private name, the object that has it today, and the reason for its use.
PRIVATE_USES: tuple[tuple[str, str, Callable[[], Any], str], ...] = (
    ("backlog_site/accounts/oauth.py", "_ip_is_public", lambda: cimd, "no setting decides it"),
    (
        "backlog_site/api/errors.py",
        "_request",
        lambda: Request(HttpRequest()),
        "the exception handler gets REST framework's request; the page of an error needs Django's",
    ),
    (
        "backlog_site/mcp/prompts.py",
        "_prompt_manager",
        lambda: toolsets,
        "an unknown prompt must be refused before the SDK reports an internal error",
    ),
    (
        "backlog_site/mcp/prompts.py",
        "_handle_get_prompt",
        lambda: toolsets,
        "the SDK's handler runs behind the checks",
    ),
    (
        "backlog_site/mcp/server.py",
        "_mcp_server",
        lambda: toolsets,
        "the package does not publish the SDK's server below it",
    ),
    (
        "backlog_site/mcp/server.py",
        "_tool_manager",
        lambda: toolsets,
        "an unknown tool must be a protocol error",
    ),
    (
        "backlog_site/mcp/server.py",
        "_handle_call_tool",
        lambda: toolsets,
        "the SDK's handler runs behind the check",
    ),
    (
        "backlog_site/mcp/toolset.py",
        "_tool_manager",
        lambda: toolsets,
        "tools have a class that refuses unknown arguments",
    ),
    (
        "backlog_site/mcp/toolset.py",
        "_tools",
        lambda: toolsets._tool_manager,
        "add_tool() would build the SDK's own class",
    ),
    (
        "backlog_site/operations/backups.py",
        "_raw_delete",
        lambda: Task.objects.all(),
        "a restore empties tables without loading their rows",
    ),
    (
        "backlog_site/serving/django_threads.py",
        "_handler_class",
        lambda: HttpResponse(),
        "Django's own handlers set it for the signal at the end of a request",
    ),
    (
        "resources_app/database/prepared.py",
        "_iterable_class",
        lambda: Task.objects.all(),
        "rows of a prepared statement become what the queryset would yield",
    ),
    (
        "resources_app/database/prepared.py",
        "_prepare_cursor",
        lambda: connection,
        "Django has no cursor that sends parameters separately for one statement",
    ),
)


@cache
def modules() -> dict[str, ast.Module]:
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for path in files
        if "migrations" not in path.parts
    }


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the full names of imported modules and of what is imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_foreign(name: str) -> bool:
    return name.partition(".")[0] not in {*PACKAGES, *sys.stdlib_module_names}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined_in(tree: ast.Module) -> set[str]:
    """Return the names that classes of the module define for themselves."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names |= {node.attr} if ast.unparse(node.value) == "self" else set()
    return names


def private_uses(tree: ast.Module) -> set[str]:
    """Return the private names of other packages that the module uses."""
    own = DOCUMENTED | OURS | defined_in(tree)
    attributes = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls")
    }
    names = {part for name in imported(tree) if is_foreign(name) for part in name.split(".")}
    return {name for name in attributes - own | names if is_private(name)}


@cache
def declared() -> frozenset[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return frozenset(canonicalize_name(Requirement(one).name) for one in project["dependencies"])


def test_every_imported_package_is_a_declared_dependency() -> None:
    sources = packages_distributions()
    top_level = {
        name.partition(".")[0]
        for tree in modules().values()
        for name in imported(tree)
        if is_foreign(name)
    }
    undeclared = {
        name
        for name in top_level
        if not declared() & {canonicalize_name(source) for source in sources[name]}
    }
    assert not undeclared, f"declare in pyproject.toml: {sorted(undeclared)}"


def test_every_declared_dependency_has_a_reason() -> None:
    decision = (ROOT / "docs/decisions/0005-dependencies.md").read_text()
    table = [line.split("|")[1] for line in decision.splitlines() if line.startswith("| ")]
    explained = {
        canonicalize_name(word)
        for cell in table
        for word in re.findall(r"[\w-]+", re.sub(r"\[.*?\]", "", cell))
    }
    assert not declared() - explained


def test_private_names_of_other_packages_are_used_only_where_listed() -> None:
    found = {(path, name) for path, tree in modules().items() for name in private_uses(tree)}
    assert found == {(path, name) for path, name, _, _ in PRIVATE_USES}


@pytest.mark.parametrize(
    "code",
    [
        "from mcp.client._memory import connect",
        "from mcp.client import _memory",
        "import mcp.client._memory",
        "def f(rows):\n    return rows._iterable_class",
    ],
)
def test_a_new_private_use_is_found(code: str) -> None:
    assert private_uses(ast.parse(code))


@pytest.mark.parametrize(
    ("name", "owner"),
    [(name, owner) for _, name, owner, _ in PRIVATE_USES],
    ids=[f"{path}-{name}" for path, name, _, _ in PRIVATE_USES],
)
def test_a_private_name_that_we_use_still_exists(name: str, owner: Callable[[], Any]) -> None:
    assert hasattr(owner(), name)
