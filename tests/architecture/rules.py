"""Define the architecture rules as functions from a module's syntax tree to its violations."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("backlog_site", "search_app", "resources_app")
ADAPTERS = ("backlog_site/api/", "backlog_site/mcp/", "backlog_site/viewer/")
# View models and their queries.
VIEW_QUERIES = "backlog_site/viewer/queries/"

QUERYING = {"objects", "_default_manager", "_base_manager"}
WRITING = {
    "save",
    "create",
    "get_or_create",
    "update_or_create",
    "bulk_create",
    "bulk_update",
    "update",
    "delete",
}
# Words that hide a missing name. Those that can be terms of art ("data folder", "exception
# handler") are allowed.
FORBIDDEN_WORDS = {"helper", "helpers", "util", "utils", "processor"}
# Errors to map and connections to release; everything else of django.db is a query.
DATABASE_EDGE = {"close_old_connections", "connection", "connections", "transaction"}


def sources() -> Iterator[tuple[str, str]]:
    """Yield the name and text of every module we wrote, except migrations."""
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in file.parts:
                yield file.relative_to(ROOT).as_posix(), file.read_text()


def queries_in_adapter(tree: ast.AST) -> list[str]:
    """Return queries in an adapter.

    Models may be named as types; querying the database belongs to the domain.
    """
    found = [
        f"line {node.lineno}: {ast.unparse(node)}" for node in _attributes(tree) if _is_query(node)
    ]
    for module, name, line in _imports(tree):
        is_edge = name in DATABASE_EDGE or name.endswith("Error")
        if module.startswith("django.db.models") or (module == "django.db" and not is_edge):
            found.append(f"line {line}: from {module} import {name}")
    return found


def _is_query(node: ast.Attribute) -> bool:
    return node.attr in QUERYING or (
        node.attr == "cursor" and ast.unparse(node.value).startswith("connection")
    )


def orm_writes(tree: ast.AST) -> set[str]:
    """Return the names of the write methods called on querysets and rows."""
    return {method for call in _calls(tree) if (method := _orm_write(call))}


def _orm_write(call: ast.Call) -> str | None:
    """Return the write method of a call.

    WriteSession.save names its action and is the write path; dict.update and redis' delete take
    arguments.
    """
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    keywords = {keyword.arg for keyword in call.keywords}
    if method not in WRITING or (method == "save" and "action" in keywords):
        return None
    if method == "delete":
        return None if call.args or keywords else method
    if method == "update":
        return None if call.args or "__dict__" in ast.unparse(call.func) else method
    if method == "save":
        return method
    return method if {node.attr for node in _attributes(call.func)} & QUERYING else None


def model_signals(tree: ast.AST) -> list[str]:
    return [
        f"line {line}: {module}.{name}"
        for module, name, line in _imports(tree)
        if module.startswith("django.db.models.signals")
        or (module, name) in {("django.db.models", "signals"), ("django.dispatch", "receiver")}
    ]


def broad_excepts(tree: ast.AST) -> list[str]:
    broad = {"Exception", "BaseException"}
    return [
        f"line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or broad & {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
        )
    ]


def pickles(tree: ast.AST) -> list[str]:
    modules = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
    imported = [
        f"line {line}: {module}"
        for module, _, line in _imports(tree)
        if module.partition(".")[0] in modules
    ]
    named = [
        f"line {node.lineno}: 'pickle'"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == "pickle"
    ]
    return imported + named


def logic_in_save(tree: ast.AST) -> list[str]:
    """Return models with logic in save().

    A row that writes more than itself hides its side effects.
    """
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    of_models = [
        node for node in classes if any("Model" in ast.unparse(base) for base in node.bases)
    ]
    return [
        f"{node.name}.{part.name}"
        for node in of_models
        for part in node.body
        if isinstance(part, ast.FunctionDef) and part.name in {"save", "delete", "full_clean"}
    ]


def unclear_names(module: str, tree: ast.AST) -> list[str]:
    defined = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return [name for name in (Path(module).stem, *defined) if _words(name) & FORBIDDEN_WORDS]


def function_lengths(tree: ast.AST) -> list[int]:
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def _attributes(tree: ast.AST) -> Iterator[ast.Attribute]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _imports(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, "", node.lineno) for name in node.names)
