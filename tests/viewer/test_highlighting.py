"""Test that code is highlighted by a child process with a CPU time limit: no text blocks this
process, or the child, for long.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.utils.html import escape

from backlog_site.viewer.highlighting import LANGUAGES, MAX_HIGHLIGHTED, highlight_file, language_of
from backlog_site.viewer.isolation import CPU_SECONDS, Cache, renderer
from backlog_site.viewer.markdown import MAX_MARKS_HERE, MAX_TEXT_HERE, render
from resources_app.writing import stored_files
from tests.architecture.rules import ROOT
from tests.factories import as_actor
from tests.viewer.browsing import fragment, signed_in, text_of

# From the report: 52 bytes that take Pygments minutes.
FREEZE = '```maple\n"' + "\\" * 38 + "\n```"
# A listed lexer that takes quadratic time.
SLOW = "```javascript\n" + '"\\' * 20_000 + "\n```"


@pytest.fixture(autouse=True)
def new_cache() -> Iterator[None]:
    renderer.close()
    renderer.__init__()  # type: ignore[misc]  # as after a start
    yield


def test_code_of_a_known_language_is_highlighted() -> None:
    assert '<span class="kn">import</span>' in render("```py\nimport a\n```")
    assert '<span class="kn">import</span>' in highlight_file("import a\n", "a.py")


@pytest.mark.parametrize("language", ["maple", "perl", "urbiscript", "smithy", "nonsense", ""])
def test_code_of_any_other_language_is_shown_plain(language: str) -> None:
    assert "<span" not in render(f"```{language}\nimport a\n```")
    assert language_of(name=language) == ""


def test_a_text_that_freezes_a_lexer_is_shown_as_it_was_written() -> None:
    started = time.process_time()
    assert escape("\\" * 38) in render(FREEZE)
    assert escape('"\\' * 20_000) in render(SLOW)
    # Neither has cost this process the seconds that a lexer takes.
    assert time.process_time() - started < 1


def test_a_child_that_was_ended_is_replaced() -> None:
    render("```py\na = 1\n```")
    before = renderer.pid
    assert "<span" not in render(SLOW)
    assert '<span class="n">b</span>' in render("```py\nb = 1\n```")
    assert renderer.pid not in {None, before}


def test_a_child_that_was_killed_by_another_is_replaced() -> None:
    render("```py\na = 1\n```")
    assert renderer.pid
    os.kill(renderer.pid, signal.SIGKILL)
    os.waitid(os.P_PID, renderer.pid, os.WEXITED | os.WNOWAIT)
    assert '<span class="n">b</span>' in render("```py\nb = 1\n```")


def test_a_text_is_rendered_once() -> None:
    first = render(SLOW)
    assert renderer.pid is None
    assert render(SLOW) == first
    assert renderer.pid is None, "no child was started for a text whose outcome is known"


def test_the_cache_is_bounded_by_what_it_keeps() -> None:
    cache = Cache(max_characters=5_000)
    for number in range(100):
        cache.put(b"%d" % number, "x" * 800)
    assert sum(cache.get(b"%d" % number)[0] for number in range(100)) == 5
    assert cache.get(b"99") == (True, "x" * 800)


def test_the_child_ends_with_its_parent() -> None:
    """Check that standard error, which the child inherits, closes: that happens only when the child
    has ended too.
    """
    program = (
        "from backlog_site.viewer.markdown import render\nfrom backlog_site.viewer.isolation import"
        " renderer\n"
    )
    program += (
        "render('```py\\na\\n```')\nprint(renderer.pid, flush=True)\nimport os\nos._exit(0)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(run.stdout)


def test_a_long_file_is_shown_plain() -> None:
    source = "a = 1\n" * (MAX_HIGHLIGHTED // 6 + 1)
    assert highlight_file(source, "a.py") == source


@pytest.mark.django_db
def test_a_page_with_such_a_text_opens_for_its_readers(alice: User, bob: User) -> None:
    stored_files.create_resource(as_actor(alice), "resources/slow.js", '"\\' * 20_000)
    stored_files.create_resource(as_actor(alice), "resources/freeze.md", FREEZE)
    for name in ("slow.js", "freeze.md"):
        answer = fragment(signed_in(bob), f"/open/?uri=mcp://backlog/resources/{name}")
        assert answer.status_code == 200
        assert "\\" in text_of(answer)


PIECES = [
    *('"', "'", "`", '"""', "'''", "\\", '"\\', "'\\", "`\\", "(", "[", "{", "<", "<!--", '<a b="', "</", "/*", "//", "#"),
    *("--", "$", "${", "$((", "`${", "@", "a", "a ", "a.", "a=", "a: ", "- ", " ", "\t", "\n", "\n ", "0", "0.", "1e", "_"),
    *("<<A\n", 'r"', 'r#"', 'R"(', 'f"{', "{{", "{%", "%", "&", "|", "!", "?", ">", ";", ",", "*", "/", "=>", "class a"),
    *("import a", "SELECT ", "@@ ", "+a\n", "---\n", "key: |\n ", "[a]\n", "a=b\n", "<script>", "<style>", "<?", "<![CDATA["),
    *("\\u", "s{", "s!", "a<", "a(", "\r", "\u2028", "#if 0\n", "$$", "~", "^"),
]  # fmt: skip
OPENINGS = ("", '"', "'", "`", "/*", '"""', "<a ", "{", "a ")
PIECE_LENGTH = 300
FUZZ = """
import json, signal, sys
from backlog_site.viewer.highlighting import highlight_here
for language, text in json.load(sys.stdin):
    highlight_here("a", language)
    signal.setitimer(signal.ITIMER_PROF, float(sys.argv[1]))
    highlight_here(text, language)
    signal.setitimer(signal.ITIMER_PROF, 0)
    print(language, repr(text[:20]), flush=True)
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_lexer_of_the_list_backtracks_exponentially(language: str) -> None:
    """Lex 300 characters: enough for exponential time to exceed the age of the universe; polynomial
    time takes milliseconds.
    """
    texts = [
        (language, start + piece * (PIECE_LENGTH // len(piece)))
        for piece in PIECES
        for start in OPENINGS[:1]
    ]
    texts += [
        (language, start + piece * PIECE_LENGTH)
        for piece in ("\\", " ", "a ", "\\a", '\\"', "\n")
        for start in OPENINGS
    ]
    command = [sys.executable, "-c", FUZZ, str(CPU_SECONDS)]
    run = subprocess.run(
        command, input=json.dumps(texts), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, (run.returncode, run.stdout.splitlines()[-1:], run.stderr)
    assert len(run.stdout.splitlines()) == len(texts)


def test_what_is_rendered_in_this_process_is_short() -> None:
    """Check the limit of what no timer ends: with a higher one, the property below would depend on
    luck.
    """
    assert (MAX_TEXT_HERE, MAX_MARKS_HERE) <= (10_000, 1_500)
