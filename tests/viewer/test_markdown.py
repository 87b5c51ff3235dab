"""Test that Markdown by agents and users becomes safe HTML, and our addresses become links that
open here.
"""

from urllib.parse import quote

import pytest
from django.utils.html import escape

from backlog_site.viewer.markdown import BOX_LABEL, destination, render
from backlog_site.viewer.spotlight import marked
from resources_app.writing import checklists

PAYLOADS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "![x](data:image/svg+xml;base64,PHN2Zy8+)",
    "<svg onload=alert(1)><script>alert(1)</script></svg>",
    "<style>*{background:url(//evil.example)}</style>",
    '<a href="x" style="background:url(javascript:alert(1))">x</a>',
    '<div hx-get="/raw/" hx-trigger="load" onclick="alert(1)">x</div>',
    '<iframe src="//evil.example"></iframe>',
    "[x](vbscript:msgbox(1))",
    "<https://evil.example/\"onmouseover=alert(1)>",
    "```\"><script>alert(1)</script>\nx\n```",
    "```mermaid\n\"><script>alert(1)</script>\n```",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "[x](mcp://backlog/\"><script>alert(1)</script>)",
    "mcp://backlog/<script>alert(1)</script>",
    "- [ ] <img src=x onerror=alert(1)> \"onfocus=alert(1) autofocus=\"",
]  # fmt: skip


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_in_a_text_can_run(payload: str) -> None:
    made = render(payload, may_tick=True)
    for tag in ("<script", "<svg", "<style", "<iframe", "<div hx", "<img src=x", "<object"):
        assert tag not in made
    outside_text = [part.partition(">")[0].lower() for part in made.split("<")[1:]]
    for opening in outside_text:
        bare = opening.split('aria-label="')[0]
        for forbidden in (
            "javascript:",
            "vbscript:",
            "data:text",
            "data:image",
            " on",
            " style=",
            " hx-",
        ):
            assert forbidden not in bare, opening


def test_pictures_of_other_hosts_are_links() -> None:
    made = render("![chart](https://evil.example/pixel.png)")
    assert "<img" not in made
    assert 'href="https://evil.example/pixel.png"' in made


def test_pictures_of_our_own_are_shown() -> None:
    assert 'src="/raw/?uri=mcp%3A%2F%2Fbacklog' in render(
        "![chart](mcp://backlog/artifacts/chart.png)"
    )


@pytest.mark.parametrize(
    ("text", "href"),
    [
        ("see TASK-0042.", "/t/TASK-0042/"),
        ("see EPIC-0007", "/t/EPIC-0007/"),
        (
            "mcp://backlog/tasks/TASK-0001, then",
            "/open/?uri=mcp%3A%2F%2Fbacklog%2Ftasks%2FTASK-0001",
        ),
        ("`mcp://backlog/resources/a.md`", "/open/?uri=mcp%3A%2F%2Fbacklog%2Fresources%2Fa.md"),
        ("[the file](file:///srv/a.md)", "/open/?uri=file%3A%2F%2F%2Fsrv%2Fa.md"),
        ("ib://ACME/resources/9", "/open/?uri=ib%3A%2F%2FACME%2Fresources%2F9"),
    ],
)
def test_our_addresses_become_links_that_open_here(text: str, href: str) -> None:
    assert f'href="{href}"' in render(text)


def test_a_path_of_one_machine_is_marked() -> None:
    assert "one machine" in render("[the file](file:///home/alice/a.md)")
    assert "one machine" not in render("[the file](mcp://backlog/resources/a.md)")


ADR = "mcp://backlog/resources/docs/adr/0001.md"


@pytest.mark.parametrize(
    ("link", "uri"),
    [
        ("0002.md", "mcp://backlog/resources/docs/adr/0002.md"),
        ("./0002.md#why", "mcp://backlog/resources/docs/adr/0002.md#why"),
        ("../a%20b.md", "mcp://backlog/resources/docs/a%20b.md"),
        ("../../../artifacts/run/", "mcp://backlog/artifacts/run"),
        ("..", "mcp://backlog/resources/docs"),
        ("#decision", f"{ADR}#decision"),
    ],
)
def test_a_relative_link_is_resolved_against_the_folder_of_its_file(link: str, uri: str) -> None:
    assert f'data-uri="{uri}"' in render(f"[x]({link})", base=ADR)
    assert f'src="/raw/?uri={quote(uri, safe="")}"' in render(f"![x]({link})", base=ADR)


@pytest.mark.parametrize(
    ("text", "base", "reason"),
    [
        ("[x](ftp://example.org/a)", "", "ftp: links are not supported"),
        ("[x](obsidian://open?a=b)", ADR, "obsidian: links are not supported"),
        ("[x](docs/a.md)", "", "relative link outside a file"),
        ("[x](../../../../../a.md)", ADR, "leads above the topmost folder"),
        ("[x](/etc/passwd)", ADR, "absolute path"),
        ("[x](//example.org/a)", ADR, "absolute path"),
        ("[x]()", ADR, "empty link"),
        ("![x](ftp://example.org/a.png)", "", "ftp: links are not supported"),
    ],
)
def test_a_link_that_leads_nowhere_is_text_with_a_reason(text: str, base: str, reason: str) -> None:
    made = render(text, base=base)
    assert "<a" not in made and "href" not in made
    assert "x" in made and reason in made


def test_what_only_looks_like_a_link_is_left_as_it_is() -> None:
    assert render("see //example.org/a") == "<p>see //example.org/a</p>\n"


def test_sections_have_the_names_that_links_give_them() -> None:
    made = render("# Why `a_b`?\n\n# Why a_b\n")
    assert 'id="s-why-a_b"' in made and 'id="s-why-a_b-1"' in made


def test_boxes_know_their_line_and_are_locked_for_readers() -> None:
    text = "Intro\n\n- [ ] first\n- [x] second"
    assert 'data-line="2"' in render(text, may_tick=True)
    assert 'data-line="3"' in render(text, may_tick=True)
    assert render(text).count("disabled") == 2


def test_the_label_of_a_box_is_as_long_as_the_one_it_is_ticked_by() -> None:
    assert BOX_LABEL == checklists.LABEL


def test_headings_never_skip_a_level() -> None:
    assert '<h3 id="s-deep">Deep</h3>' in render("#### Deep")
    made = render("# One\n\n#### Two\n\n## Three")
    assert (
        made.index('<h3 id="s-one">One')
        < made.index('<h4 id="s-two">Two')
        < made.index('<h4 id="s-three">Three')
    )


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "notes/a.md", "vbscript:x", ""]
)
def test_a_reference_that_leads_nowhere_safe_is_no_link(url: str) -> None:
    assert destination(url) == ""


def test_what_matched_is_marked_and_the_rest_escaped() -> None:
    assert marked("<b>Folder</b> folders", "folder") == (
        "&lt;b&gt;<mark>Folder</mark>&lt;/b&gt; <mark>folders</mark>"
    )


@pytest.mark.parametrize("text", ["<b>a</b> " * 11_112, "![" * 20_001, "- a\n" * 20_001])
def test_a_text_that_would_take_long_is_shown_as_it_was_written(text: str) -> None:
    assert render(text) == f"<pre>{escape(text)}</pre>"


def test_a_long_text_with_as_many_marks_as_people_write_is_rendered() -> None:
    assert "<strong>bold</strong>" in render(
        "A line of **bold** text with `code`, as people write them.\n\n" * 700
    )
