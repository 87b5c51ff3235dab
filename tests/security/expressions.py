"""Attack every regular expression of the three packages with text that makes it backtrack, under a
CPU time limit.

Run as a program: `python -m tests.security.expressions FIRST` tries them from number FIRST on and
prints each name before its turn. A slow expression ends the process, so the name printed last is
the slow one.
"""

import ast
import gc
import importlib
import pkgutil
import re
import signal
import sys
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import django

PACKAGES = ("backlog_site", "search_app", "resources_app")
METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split")
LENGTH = 20_000
# A linear expression takes a few milliseconds; a quadratic one takes 0.3 seconds or more.
CPU_SECONDS = 0.15
# Programs and the fake service, which see no user text.
LEFT_OUT = ("backlog_site.asgi", "backlog_site.__main__", "resources_app.intelligencebank.fake")
_PREFIXES = (
    "",
    "a",
    "- ",
    "# ",
    '"',
    "file:///",
    "mcp://backlog/",
    "ib://",
    "TASK-",
    "/home/",
    "c:\\",
    "k: a",
    "> ",
    "[",
    "<a",
    "http://",
)
_COMMON = " a0\n\t-_\"'\\/.:,#*[](){}<>|=@%&A\x00é"
_NESTED = 2


class Tried(NamedTuple):
    name: str
    pattern: "re.Pattern[str]"
    methods: tuple[str, ...]


def collected() -> list[Tried]:
    """Return every compiled expression that a module holds, and those in a call of `re`, each
    once.
    """
    found: dict[tuple[str, int], Tried] = {}
    for module in _modules():
        for one in (*_held(module), *_inline(module)):
            found.setdefault((one.pattern.pattern, one.pattern.flags), one)
    return sorted(found.values(), key=lambda tried: (tried.name, tried.pattern.pattern))


def _modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for one in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not one.name.startswith(LEFT_OUT) and ".migrations" not in one.name:
                yield importlib.import_module(one.name)


def _held(module: ModuleType) -> Iterator[Tried]:
    source = _source(module)
    for name, value in vars(module).items():
        called = tuple(
            method for method in METHODS if re.search(rf"\b{re.escape(name)}\.{method}\b", source)
        )
        for pattern in _patterns_in(value, _NESTED):
            yield Tried(f"{module.__name__}.{name}", pattern, called or METHODS)


def _source(module: ModuleType) -> str:
    return Path(module.__file__).read_text() if module.__file__ else ""


def _patterns_in(value: object, depth: int) -> Iterator["re.Pattern[str]"]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for entry in value:
            yield from _patterns_in(entry, depth - 1)
    elif depth and isinstance(value, dict):
        for entry in value.values():
            yield from _patterns_in(entry, depth - 1)


def _inline(module: ModuleType) -> Iterator[Tried]:
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            method = ast.unparse(node.func).removeprefix("re.")
            if method in METHODS and isinstance(node.args[0], ast.Constant):
                yield Tried(
                    f"{module.__name__}:{node.lineno}", re.compile(node.args[0].value), (method,)
                )


def texts_for(pattern: "re.Pattern[str]", length: int) -> Iterator[str]:
    """Yield long runs of what the expression mentions, after prefixes that start it, before an end
    that stops it.
    """
    mentioned = [one for one in dict.fromkeys(pattern.pattern) if one.isprintable()]
    words = list(dict.fromkeys(re.findall(r"[a-zA-Z]{2,}", pattern.pattern)))[:4]
    for one in dict.fromkeys([*mentioned[:25], *_COMMON]):
        yield one * (length - 1) + "\x00"
    for prefix in (*_PREFIXES, *words):
        for one in (" ", "a", "0", "-", "#", "\\", *mentioned[:3]):
            yield (prefix + one * length)[: length - 1] + "\x00"
    for first, second in permutations([" ", "a", *mentioned[:4]], 2):
        yield (first + second) * (length // 2)


def _use(tried: Tried, method: str, text: str) -> None:
    match method:
        case "finditer":
            for _ in tried.pattern.finditer(text):
                pass
        case "sub":
            tried.pattern.sub("", text)
        case _:
            getattr(tried.pattern, method)(text)


def attack(tried: Tried) -> None:
    """Match under a timer.

    The default action of SIGPROF ends the process, even in the middle of a match.
    """
    for text in texts_for(tried.pattern, LENGTH):
        for method in tried.methods:
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            _use(tried, method, text)
            signal.setitimer(signal.ITIMER_PROF, 0)


def main(first: int) -> None:
    django.setup()
    every = collected()
    gc.disable()
    for number, tried in enumerate(every[first:], first):
        print(f"{number} {tried.name}", flush=True)
        attack(tried)
    print("done", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
