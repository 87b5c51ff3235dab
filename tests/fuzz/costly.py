"""Shows texts that are made to be expensive, under a limit of CPU time for each.

Run as a program: `python -m tests.fuzz.costly` prints the name of each text before its turn. A text
that takes too long ends the process, so the name printed last is the slow one.
"""

import gc
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

import django

from backlog_site.viewer.highlighting import LANGUAGES
from backlog_site.viewer.markdown import COSTLY, MAX_MARKS, MAX_MARKS_HERE

LENGTH = 100_000
# Of this process. The child that renders long texts has its own limit, of which it is ended.
CPU_SECONDS = 0.5
Case = tuple[str, str, Sequence[str]]
EVERYWHERE = ("description", "markdown", "csv", "json", "text", "links", "title", "reference")
PIECES = [
    *("[", "![", "[](", "[a](", "[a]: x\n", "![a](mcp://backlog/x)", "<", '<a href="', "<http://a", "&", "&amp;", "<b>", "</"),
    *("*", "*_", "_*a", "**a ", "a**b", "~~a", "`", "``a`", "\\*", "#", "# a\n", "> ", ">", "- ", "- a\n", "- [ ] a\n", "1. "),
    *("| a ", "|-", "|a|\n|-|\n", "http://a", "http://a.b ", "*http://a", "x.com ", "www.", "a@", "a@b.c ", "//a"),
    "mailto:a@b.c",
    *("file:///a.", "a.b", "mcp://", "mcp://a(", "`mcp://a`", "TASK-0001 ", "```\n", "~~~\n", "```py\na\n```\n", "\n", "\t", " "),
    *("    a\n", "a  \n", "\\", "ж", "\u2028", "\r", "---\n", ": a\n", "a: ", ",", '"', '","', '{"a":', "é\u0301"),
]  # fmt: skip
FRONTMATTER = [
    "a: b\n",
    "x: a: b\n",
    "? a\n",
    "k: {a: {a: {\n",
    "- a\n",
    "'a\n",
    "#\n",
    "- - ",
    "a\n  ",
    "&a\n",
    "*a\n",
    "k: [\n",
]
INLINE = ["a,", "a ", " ", "\t", "a: b,", "[", "{", "\\n", "''", "''a", "&a ", "!!a "]


def texts() -> Iterator[Case]:
    """Name, text, and the ways to show it.

    `make fuzz` tries all of them, the ordinary suite every fourth.
    """
    step = 1 if "FUZZ_CASES" in os.environ else 4
    return islice(chain(_markdown(), _code(), _frontmatter()), 0, None, step)


def _markdown() -> Iterator[Case]:
    for piece in PIECES:
        yield f"{piece!r} repeated", piece * (LENGTH // len(piece)), EVERYWHERE
        marks = sum(map(piece.count, COSTLY))
        if marks:
            yield f"{piece!r} up to the most marks", piece * (MAX_MARKS // marks), ("description",)
            yield (
                f"{piece!r} within this process",
                piece * (MAX_MARKS_HERE // marks),
                ("description",),
            )
        yield (
            f"{piece!r} nested",
            "".join(" " * (2 * n) + piece.strip("\n") + "\n" for n in range(250)),
            ("description",),
        )
        yield (
            f"{piece!r} quoted",
            "".join("> " * n + piece.strip("\n") + "\n" for n in range(300)),
            ("description",),
        )


def _code() -> Iterator[Case]:
    for language in [*LANGUAGES, "maple", "perl", "mermaid"]:
        for piece in ('"\\', "a."):
            yield (
                f"{language} of {piece!r}",
                f"```{language}\n" + piece * (49_000 // len(piece)) + "\n```\n",
                ("description",),
            )


def _frontmatter() -> Iterator[Case]:
    for piece in FRONTMATTER:
        for length in (64_000, 12_000):
            yield (
                f"frontmatter of {piece!r}",
                "---\n" + piece * (length // len(piece)) + "---\nx",
                ("resource", "facts"),
            )
    for piece in INLINE:
        for start, end in (("k: a", "b: c: d"), ("k: [", "]"), ('k: "', '"')):
            value = f"{start}{piece * (63_000 // len(piece))}{end}"
            yield f"frontmatter value of {start + piece!r}", f"---\n{value}\n---\nx", ("resource",)


def ways() -> dict[str, Callable[[str], Any]]:
    """Every function that shows a text: descriptions and comments, files by their type, titles,
    labels and references.
    """
    from django.template import engines

    from backlog_site.viewer import opening
    from backlog_site.viewer.markdown import destination, render
    from resources_app.files.contents import facts_of
    from resources_app.files.links import machine_specific_paths
    from resources_app.reading.result import Reading
    from resources_app.reading.viewer import viewer_json

    template = engines["django"].from_string("{{ text }}{{ text|truncatechars:60 }}")
    page = engines["django"].get_template("viewer/_resource.html")

    def show(name: str, mime_type: str) -> Callable[[str], Any]:
        def shown(text: str) -> Any:
            opened = opening._opened(
                Reading(f"mcp://backlog/resources/{name}", mime_type, text, "e"), "L1"
            )
            return page.render({"opened": opened, "uri": opened.uri})

        return shown

    return {
        "description": lambda text: render(text, may_tick=True),
        "markdown": show("a.md", "text/markdown"),
        "csv": show("a.csv", "text/csv"),
        "json": show("a.json", "application/json"),
        "text": show("a.txt", "text/plain"),
        "resource": lambda text: viewer_json(
            Reading("mcp://backlog/resources/a.md", "text/markdown", text, "e")
        ),
        "facts": lambda text: facts_of("a.md", text),
        "links": machine_specific_paths,
        "title": lambda text: template.render({"text": text}),
        "reference": destination,
    }


def main() -> None:
    """The default action of SIGPROF ends the process; children are counted when they have ended."""
    from backlog_site.viewer.isolation import renderer

    django.setup()
    shown = ways()
    for way in shown.values():
        way("# a\n\n```py\na\n```\n")
    gc.disable()
    for name, text, kinds in texts():
        for kind in kinds:
            print(f"{kind}: {name}", flush=True)
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            shown[kind](text[:LENGTH])
            signal.setitimer(signal.ITIMER_PROF, 0)
        gc.collect()
    renderer.close()
    print("done", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")
    main()
