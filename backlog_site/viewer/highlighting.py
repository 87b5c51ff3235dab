"""Highlight source code as HTML with CSS classes.

Supports only languages with fuzzed lexers, up to a size limit.
"""

from functools import cache
from pathlib import PurePosixPath

from django.utils.html import escape
from pygments import highlight as mark
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from backlog_site.viewer.isolation import renderer

MAX_HIGHLIGHTED = 50_000
# Pygments' name of each lexer, its aliases in code fences, and file extensions. None of them
# backtracks exponentially (tests/viewer/test_highlighting.py); slow input ends at the CPU time
# limit.
LANGUAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "bash": (("sh", "shell", "zsh"), ("sh", "bash", "zsh")),
    "c": (("h", "c++", "cpp"), ("c", "h", "cc", "cpp", "hpp")),
    "console": (("shell-session", "terminal"), ()),
    "css": ((), ("css",)),
    "diff": (("patch",), ("diff", "patch")),
    "docker": (("dockerfile",), ("dockerfile",)),
    "go": (("golang",), ("go",)),
    "html": (("htm",), ("html", "htm")),
    "ini": (("cfg", "conf"), ("ini", "cfg", "conf")),
    "java": ((), ("java",)),
    "javascript": (("js", "jsx", "mjs", "node"), ("js", "jsx", "mjs", "cjs")),
    "json": (("jsonc", "json5"), ("json", "jsonl", "ipynb")),
    "kotlin": (("kt",), ("kt",)),
    "make": (("makefile",), ("makefile", "mk")),
    "python": (("py", "python3"), ("py", "pyi")),
    "rust": (("rs",), ("rs",)),
    "scss": ((), ("scss",)),
    "sql": (("postgres", "sqlite"), ("sql",)),
    "toml": ((), ("toml",)),
    "typescript": (("ts", "tsx"), ("ts", "tsx", "mts", "cts")),
    "xml": (("svg",), ("xml", "svg")),
    "yaml": (("yml",), ("yaml", "yml")),
}
_FORMATTER = HtmlFormatter(nowrap=True)
_BY_NAME = {name: lexer for lexer, (names, _) in LANGUAGES.items() for name in (lexer, *names)}
_BY_ENDING = {ending: lexer for lexer, (_, endings) in LANGUAGES.items() for ending in endings}


def language_of(*, name: str = "", filename: str = "") -> str:
    """Return the lexer for the name in a code fence or for a file, or "" if there is none."""
    if filename:
        path = PurePosixPath(filename.lower())
        return _BY_ENDING.get(path.suffix.lstrip(".") or path.name, "")
    return _BY_NAME.get(name.lower(), "")


def highlight_file(source: str, filename: str) -> str:
    """Return HTML: highlighted by the child process, or escaped if the language is unknown or a
    limit is exceeded.
    """
    language = language_of(filename=filename)
    if not language or len(source) > MAX_HIGHLIGHTED:
        return escape(source)
    marked = renderer.render(kind="code", source=source, language=language)
    return escape(source) if marked is None else marked


def highlight_here(source: str, language: str) -> str:
    """Return highlighted HTML, without a time limit. For the child process."""
    if not language or len(source) > MAX_HIGHLIGHTED:
        return escape(source)
    return str(mark(source, _lexer(language), _FORMATTER))


@cache
def _lexer(language: str) -> Lexer:
    return get_lexer_by_name(language, stripnl=False)
