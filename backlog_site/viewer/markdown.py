"""Render Markdown to safe HTML: raw HTML stays text, the output is sanitized again, and nothing
loads from other hosts.

Long texts and texts with code are rendered by the child process of isolation.py, under a CPU time
limit. This module therefore imports nothing that needs Django's settings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import nh3
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.linkify import linkify
from markdown_it.token import Token

from backlog_site.viewer.destinations import OWN_SCHEMES, REF, Destination, resolve
from backlog_site.viewer.highlighting import highlight_here, language_of
from backlog_site.viewer.isolation import renderer

# Texts above one of these limits are shown as plain text.
MAX_TEXT = 100_000
MAX_MARKS = 20_000
COSTLY = "[*_~`<|\n"
# Up to these limits a text without code is rendered in this process: the most expensive one takes
# 0.1 CPU seconds.
MAX_TEXT_HERE = 10_000
MAX_MARKS_HERE = 1_500
# Length of a check box name; resources_app.writing.checklists compares as many characters when the
# box is ticked.
BOX_LABEL = 100
MAX_LINK = 2000
_ADDRESS = r"(?:mcp|file|ib)://[^\s<>\"'`()\[\]{}|]*[^\s<>\"'`()\[\]{}|.,;:!?*_~]"
_MENTION = re.compile(f"({_ADDRESS}|{REF})")
_WHOLE_ADDRESS = re.compile(_ADDRESS)
_ALIGN = re.compile(r"text-align:(left|right|center)")
_NOT_IN_ID = re.compile(r"[^\w\- ]")
_BOXES = ("[ ] ", "[x] ", "[X] ")
_NOT_A_LINK = '<span class="local">{}</span>'
_LOCAL = (
    '<span class="local" title="A path of one machine: it does not work on another">one'
    " machine</span>"
)
# The page title is an h2; the first heading level of a text comes below it.
_TOP_HEADING = 3

_TAGS = nh3.ALLOWED_TAGS | {"input", "figure"}
_CLASSED = {"span", "code", "pre", "li", "ul", "ol", "figure", "th", "td"}
_ATTRIBUTES: dict[str, set[str]] = {
    **{tag: {"class"} for tag in _CLASSED},
    **{f"h{level}": {"id"} for level in range(1, 7)},
    "a": {"href", "title", "class", "data-uri", "data-ref"},
    "img": {"src", "alt", "title", "loading"},
    "input": {"type", "checked", "disabled", "class", "data-line", "aria-label"},
    "ol": {"start", "class"},
    "span": {"class", "title"},
}
_REGIONS = (
    ("<pre>", '<pre tabindex="0" role="group" aria-label="Code">'),
    ("<table>", '<div class="table" tabindex="0" role="group" aria-label="Table"><table>'),
    ("</table>", "</table></div>"),
)


def render(text: str, *, may_tick: bool = False, base: str = "") -> SafeString:
    """Return HTML. `may_tick` keeps the check boxes of lists enabled; each carries its line number.

    `base` is the address of the file that contains the text, against which relative links are
    resolved.
    """
    marks = sum(map(text.count, COSTLY))
    if len(text) > MAX_TEXT or marks > MAX_MARKS:
        return _as_written(text)
    is_short = len(text) <= MAX_TEXT_HERE and marks <= MAX_MARKS_HERE
    if is_short and "```" not in text and "~~~" not in text:
        return mark_safe(render_here(text, may_tick=may_tick, base=base))  # noqa: S308  cleaned
    made = renderer.render(kind="markdown", text=text, may_tick=may_tick, base=base)
    if made is None and is_short:
        made = render_here(text, may_tick=may_tick, base=base)
    return _as_written(text) if made is None else mark_safe(made)  # noqa: S308  cleaned


def render_here(text: str, *, may_tick: bool, base: str, highlighted: bool = False) -> str:
    """Render in this process, without a time limit. `highlighted` highlights the code in fences."""
    made = _markdown.render(text, {"context": _Context(may_tick, base, highlighted)})
    clean = nh3.clean(
        made,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    for plain, reachable in _REGIONS:
        clean = clean.replace(plain, reachable)
    return clean


def destination(url: str) -> str:
    """Return the target of a reference, or "" if it cannot be followed."""
    return resolve(url).href


def _as_written(text: str) -> SafeString:
    return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308  escaped


@dataclass(frozen=True)
class _Context:
    may_tick: bool
    base: str
    highlighted: bool


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    name = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    if name == "mermaid":
        return (
            "<figure"
            f' class="mermaid-src"><pre><code>{escape(token.content)}</code></pre></figure>\n'
        )
    language = language_of(name=name) if env["context"].highlighted else ""
    return f'<pre><code class="hl">{highlight_here(token.content, language)}</code></pre>\n'


class _BoundedLinks(LinkifyIt):  # type: ignore[misc]  # the package has no types
    """Bound the search for the end of a link.

    A text of nothing but link beginnings took quadratic time.
    """

    _BEHIND = 8

    def test_schema_at(self, text: str, name: str, position: int) -> int:
        start = max(0, position - self._BEHIND)
        near = text[start : position + MAX_LINK]
        return int(super().test_schema_at(near, name, position - start))

    def match_at_start(self, text: str) -> Any:
        return super().match_at_start(text[:MAX_LINK])


def _link_nearby(state: StateInline, silent: bool) -> bool:
    """Bound the search for the beginning of a link.

    Links skipped here are found among the texts afterwards.
    """
    return len(state.pending) <= MAX_LINK and linkify(state, silent)


def _rewrite(state: StateCore) -> None:
    _mark_checklists(state.tokens)
    _name_sections(state.tokens)
    previous = _TOP_HEADING - 1
    levels = sorted({int(token.tag[1]) for token in state.tokens if token.type == "heading_open"})
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            level = _TOP_HEADING + levels.index(int(token.tag[1]))
            if token.type == "heading_open":
                previous = min(level, previous + 1, 6)
            token.tag = f"h{previous}"
        elif token.type in {"th_open", "td_open"}:
            _align_by_class(token)
        elif token.type == "inline":
            token.children = list(_inline(token, state.env["context"]))


def section_id(heading: str) -> str:
    """Return the id of a section, from its heading or from a link fragment, as GitHub makes
    them.
    """
    return "s-" + _NOT_IN_ID.sub("", heading.strip().lower()[:MAX_LINK]).replace(" ", "-")


def _name_sections(tokens: list[Token]) -> None:
    """Set the ids of sections. The second section of a name is `name-1`."""
    seen: Counter[str] = Counter()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            name = section_id(inline.content)
            token.attrSet("id", f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1


def _mark_checklists(tokens: list[Token]) -> None:
    """Mark list items that begin with a check box with its state, and mark their list."""
    lists: list[Token] = []
    for before, token, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.type in {"bullet_list_open", "ordered_list_open"}:
            lists.append(before)
        elif before.type in {"bullet_list_close", "ordered_list_close"}:
            lists.pop()
        is_item = (before.type, token.type, inline.type) == (
            "list_item_open",
            "paragraph_open",
            "inline",
        )
        if is_item and inline.children and inline.content.startswith(_BOXES):
            before.attrSet("class", "task-list-item")
            lists[-1].attrSet("class", "contains-task-list")
            inline.meta["box"] = inline.content[1]
            inline.content = inline.content[3:]
            inline.children[0].content = inline.children[0].content[3:]


def _align_by_class(token: Token) -> None:
    """Replace inline styles, which the page's policy blocks, with classes."""
    style = _ALIGN.search(str(token.attrs.pop("style", "")))
    if style:
        token.attrSet("class", f"align-{style[1]}")


def _inline(block: Token, context: _Context) -> Iterator[Token]:
    links: list[Destination] = []
    if "box" in block.meta:
        yield _box(block, may_tick=context.may_tick)
    for token in block.children or []:
        if token.type == "link_open":
            links.append(_destination_of(token, context.base))
            yield from _opening(links[-1], token)
        elif token.type == "link_close":
            yield from _closing(links.pop(), token)
        elif token.type == "image":
            yield from _image(token, context.base)
        elif not links and token.type == "text":
            yield from _mentions(token)
        elif not links and token.type == "code_inline" and _WHOLE_ADDRESS.fullmatch(token.content):
            yield from _linked(resolve(token.content), token)
        else:
            yield token


def _destination_of(link: Token, base: str) -> Destination:
    """Return the link's destination.

    An unresolvable auto-detected link such as //host silently stays text.
    """
    to = resolve(str(link.attrGet("href") or ""), "" if link.info == "auto" else base)
    return to if to.href or link.info != "auto" else Destination()


def _opening(to: Destination, link: Token) -> Iterator[Token]:
    """Yield the opening tag. An unresolvable link is dropped; its text stays."""
    if not to.href:
        return
    link.attrSet("href", to.href)
    if to.uri:
        link.attrSet("data-uri", to.uri)
        link.attrSet("class", "uri")
    elif to.href.startswith("/t/"):
        link.attrSet("data-ref", to.href.split("/")[2])
        link.attrSet("class", "ref")
    yield link


def _closing(to: Destination, link: Token) -> Iterator[Token]:
    """Yield the closing tag, with a marker if the link does not work, or works on one machine
    only.
    """
    if to.href:
        yield link
    if to.uri.startswith("file://"):
        yield Token("html_inline", "", 0, content=_LOCAL)
    elif to.reason:
        yield Token("html_inline", "", 0, content=_NOT_A_LINK.format(escape(to.reason)))


def _image(token: Token, base: str) -> Iterator[Token]:
    """Show images stored here.

    Images elsewhere become links, because a page here requests no other host.
    """
    to = resolve(str(token.attrGet("src") or ""), base)
    if to.uri:
        token.attrSet("src", "/raw/?uri=" + quote(to.uri, safe=""))
        token.attrSet("loading", "lazy")
        yield token
    else:
        yield from _linked(to, Token("text", "", 0, content=f"{token.content or 'picture'} ↗"))


def _box(block: Token, *, may_tick: bool) -> Token:
    line = block.map[0] if block.map else 0
    ticked = "" if block.meta["box"] == " " else " checked"
    label = escape(block.content.partition("\n")[0].strip()[:BOX_LABEL])
    enabled = f'data-line="{line}"' if may_tick else "disabled"
    made = f'<input class="tick" type="checkbox" aria-label="{label}"{ticked} {enabled}>'
    return Token("html_inline", "", 0, content=made)


def _mentions(token: Token) -> Iterator[Token]:
    for place, part in enumerate(_MENTION.split(token.content)):
        if place % 2:
            yield from _linked(resolve(part), Token("text", "", 0, content=part))
        elif part:
            yield Token("text", "", 0, content=part, level=token.level)


def _linked(to: Destination, content: Token) -> Iterator[Token]:
    yield from _opening(to, Token("link_open", "a", 1))
    yield content
    yield from _closing(to, Token("link_close", "a", -1))


def _make() -> MarkdownIt:
    made = MarkdownIt("gfm-like", {"html": False, "linkify": True})
    made.linkify = _BoundedLinks()
    made.inline.ruler.at("linkify", _link_nearby)
    usual = made.validateLink
    made.validateLink = lambda url: url.startswith(OWN_SCHEMES) or usual(url)  # type: ignore[method-assign]  # the documented way
    made.add_render_rule("fence", _fence)
    made.core.ruler.push("backlog_links", _rewrite)
    return made


_markdown = _make()
