"""Run `make lint`: hold docstrings, comments, messages, templates and docs to plain English.

Counts indefinite pronouns used for roles and other phrases that read as translated, and docstrings
that begin with a relative clause instead of a verb. CONTRIBUTING.md says how to write instead.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CODE = ("backlog_site", "search_app", "resources_app", "tests", "bench", "integrations")
PROSE = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs/*.md",
    "docs/decisions/*.md",
    "integrations/**/*.md",
)
TEMPLATES = ("backlog_site/**/*.html", "resources_app/**/*.html")
PHRASES = re.compile(
    r"\b(whoever|whatever|somebody|someone's|nobody|everybody|those who|the one that|is told|was"
    r" told|are told|be told"
    r"|of its own|of their own|of one's own|of ours|who waits|at the most|leads nowhere|as it"
    r" were|in vain"
    r"|knows no|made known)\b",
    re.IGNORECASE,
)
FRAGMENT = re.compile(
    r"(What|Who|Whose|Whom|Which|Of|Where|When|How|Whether|That|Those|As|Such|Whatever|Whoever)\b"
)
# Values that people and models type, the user that PostgreSQL runs as, and this list itself.
EXCEPTIONS = re.compile(r"@nobody|[\"'`]nobody[\"'`]|user nobody")
MOST_PHRASES = 5.0  # per 10,000 words
MOST_FRAGMENTS = 2.0  # per cent of docstrings


@dataclass(frozen=True)
class Text:
    place: str
    words: str
    is_docstring: bool = False


def texts() -> Iterator[Text]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "migrations" not in path.parts and path != Path(__file__).resolve():
                yield from _of_python(path)
    for pattern in PROSE:
        for path in sorted(ROOT.glob(pattern)):
            yield from _lines(path, path.read_text())
    for pattern in TEMPLATES:
        for path in sorted(ROOT.glob(pattern)):
            yield from _lines(path, re.sub(r"{[%{#].*?[%}#]}|<[^>]*>", " ", path.read_text()))


def _of_python(path: Path) -> Iterator[Text]:
    source = path.read_text()
    tree = ast.parse(source)
    docstrings = {id(node): node for owner in ast.walk(tree) if (node := _docstring(owner))}
    for node in docstrings.values():
        yield Text(_place(path, node.lineno), str(node.value), is_docstring=True)
    for node in ast.walk(tree):
        is_text = (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        )
        if is_text and " " in node.value.strip():
            yield Text(_place(path, node.lineno), node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(_place(path, token.start[0]), token.string)


def _docstring(node: ast.AST) -> ast.Constant | None:
    if (
        not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        or not node.body
    ):
        return None
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return first.value if is_text else None


def _lines(path: Path, text: str) -> Iterator[Text]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            yield Text(_place(path, number), line)


def _place(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT)}:{line}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every place that was counted")
    parser.add_argument(
        "paths", nargs="*", help="count only places whose path starts with one of these"
    )
    options = parser.parse_args()
    chosen = [
        text for text in texts() if not options.paths or text.place.startswith(tuple(options.paths))
    ]
    words = sum(len(text.words.split()) for text in chosen)
    phrases = [
        (text.place, match.group())
        for text in chosen
        for match in PHRASES.finditer(EXCEPTIONS.sub("", text.words))
    ]
    docstrings = [text for text in chosen if text.is_docstring]
    fragments = [text.place for text in docstrings if FRAGMENT.match(text.words.strip())]
    if options.list:
        print(
            "\n".join(
                [
                    *(f"{place}: {phrase}" for place, phrase in phrases),
                    *(f"{place}: fragment" for place in fragments),
                ]
            )
        )
    per_words = 10_000 * len(phrases) / max(words, 1)
    share = 100 * len(fragments) / max(len(docstrings), 1)
    print(
        f"{words:,} words: {len(phrases)} phrases, {per_words:.1f} per 10,000 (at most"
        f" {MOST_PHRASES})"
    )
    print(
        f"{len(docstrings):,} docstrings: {len(fragments)} fragments, {share:.1f}% (at most"
        f" {MOST_FRAGMENTS}%)"
    )
    if per_words <= MOST_PHRASES and share <= MOST_FRAGMENTS:
        return 0
    print("Too many. Run `python -m tests.language --list` for the places.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
