"""Markdown → safe HTML: raw HTML in the source stays text, what is made is cleaned once more, nothing loads from elsewhere."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

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

from backlog_site.viewer.highlighting import highlight
from resources_app.checklists import LABEL

OWN_SCHEMES = ("mcp://", "file://", "ib://")
# What takes longest within both bounds takes a second; texts beyond one of them are shown as they were written.
MAX_TEXT = 100_000
MAX_MARKS = 20_000
COSTLY = "[*_~`<|\n"
MAX_LINK = 2000
_ADDRESS = r"(?:mcp|file|ib)://[^\s<>\"'`()\[\]{}|]*[^\s<>\"'`()\[\]{}|.,;:!?*_~]"
_REF = r"\b(?:TASK|EPIC)-\d{4,}\b"
_MENTION = re.compile(f"({_ADDRESS}|{_REF})")
_WHOLE_ADDRESS = re.compile(_ADDRESS)
_ALIGN = re.compile(r"text-align:(left|right|center)")
_BOXES = ("[ ] ", "[x] ", "[X] ")
_LOCAL = '<span class="local" title="A path of one machine: it does not work on another">one machine</span>'
# The page's own title is an h2; what a text calls its first level comes below.
_TOP_HEADING = 3

_TAGS = nh3.ALLOWED_TAGS | {"input", "figure"}
_CLASSED = {"span", "code", "pre", "li", "ul", "ol", "figure", "th", "td"}
_ATTRIBUTES: dict[str, set[str]] = {
    **{tag: {"class"} for tag in _CLASSED},
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


def render(text: str, *, may_tick: bool = False) -> SafeString:
    """`may_tick` leaves the check boxes of lists enabled; each carries the line it stands in."""
    if len(text) > MAX_TEXT or sum(map(text.count, COSTLY)) > MAX_MARKS:
        return mark_safe(f"<pre>{escape(text)}</pre>")  # noqa: S308  escaped
    made = _markdown.render(text, {"may_tick": may_tick})
    clean = nh3.clean(
        made,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    for plain, reachable in _REGIONS:
        clean = clean.replace(plain, reachable)
    return mark_safe(clean)  # noqa: S308  cleaned


def destination(url: str) -> str:
    """A link to us for what we answer; other links stay; what is neither leads nowhere."""
    if url.startswith(OWN_SCHEMES):
        return "/open/?uri=" + quote(url, safe="")
    if re.fullmatch(_REF, url):
        return f"/t/{url}/"
    return url if urlsplit(url).scheme in {"http", "https", "mailto"} else ""


def _fence(self: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    if language == "mermaid":
        return f'<figure class="mermaid-src"><pre><code>{escape(token.content)}</code></pre></figure>\n'
    return f'<pre><code class="hl">{highlight(token.content, language=language)}</code></pre>\n'


class _BoundedLinks(LinkifyIt):  # type: ignore[misc]  # the package has no types
    """Looks no further for the end of a link than links are long: a text of nothing but their beginnings cost its square."""

    _BEHIND = 8

    def test_schema_at(self, text: str, name: str, position: int) -> int:
        start = max(0, position - self._BEHIND)
        near = text[start : position + MAX_LINK]
        return int(super().test_schema_at(near, name, position - start))

    def match_at_start(self, text: str) -> Any:
        return super().match_at_start(text[:MAX_LINK])


def _link_nearby(state: StateInline, silent: bool) -> bool:
    """The same for the beginning of a link; what is left out here is found among the texts afterwards."""
    return len(state.pending) <= MAX_LINK and linkify(state, silent)


def _rewrite(state: StateCore) -> None:
    _mark_checklists(state.tokens)
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
            token.children = list(_inline(token, may_tick=bool(state.env.get("may_tick"))))


def _mark_checklists(tokens: list[Token]) -> None:
    """An item that begins with a box carries the state of the box, and its list says that it has some."""
    lists: list[Token] = []
    for before, token, inline in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.type in {"bullet_list_open", "ordered_list_open"}:
            lists.append(before)
        elif before.type in {"bullet_list_close", "ordered_list_close"}:
            lists.pop()
        is_item = (before.type, token.type, inline.type) == ("list_item_open", "paragraph_open", "inline")
        if is_item and inline.children and inline.content.startswith(_BOXES):
            before.attrSet("class", "task-list-item")
            lists[-1].attrSet("class", "contains-task-list")
            inline.meta["box"] = inline.content[1]
            inline.content = inline.content[3:]
            inline.children[0].content = inline.children[0].content[3:]


def _align_by_class(token: Token) -> None:
    """Styles inside the page are refused by its policy."""
    style = _ALIGN.search(str(token.attrs.pop("style", "")))
    if style:
        token.attrSet("class", f"align-{style[1]}")


def _inline(block: Token, *, may_tick: bool) -> Iterator[Token]:
    links: list[str] = []
    if "box" in block.meta:
        yield _box(block, may_tick=may_tick)
    for token in block.children or []:
        if token.type == "link_open":
            links.append(_rewrite_link(token))
            yield token
        elif token.type == "link_close":
            yield token
            yield from _marks(links.pop())
        elif token.type == "image":
            yield from _image(token)
        elif not links and token.type == "text":
            yield from _mentions(token)
        elif not links and token.type == "code_inline" and _WHOLE_ADDRESS.fullmatch(token.content):
            yield from _linked(token.content, token)
        else:
            yield token


def _rewrite_link(token: Token) -> str:
    url = str(token.attrGet("href") or "")
    if url.startswith(OWN_SCHEMES):
        token.attrSet("data-uri", url)
        token.attrSet("class", "uri")
    token.attrSet("href", destination(url))
    return url


def _marks(url: str) -> Iterator[Token]:
    if url.startswith("file://"):
        yield Token("html_inline", "", 0, content=_LOCAL)


def _image(token: Token) -> Iterator[Token]:
    """Pictures of our own are shown; those elsewhere become links, because a page here asks no other host."""
    url = str(token.attrGet("src") or "")
    if url.startswith(OWN_SCHEMES):
        token.attrSet("src", "/raw/?uri=" + quote(url, safe=""))
        token.attrSet("loading", "lazy")
        yield token
    else:
        yield from _linked(url, Token("text", "", 0, content=f"{token.content or 'picture'} ↗"))


def _box(block: Token, *, may_tick: bool) -> Token:
    line = block.map[0] if block.map else 0
    ticked = "" if block.meta["box"] == " " else " checked"
    label = escape(block.content.partition("\n")[0].strip()[:LABEL])
    enabled = f'data-line="{line}"' if may_tick else "disabled"
    made = f'<input class="tick" type="checkbox" aria-label="{label}"{ticked} {enabled}>'
    return Token("html_inline", "", 0, content=made)


def _mentions(token: Token) -> Iterator[Token]:
    for place, part in enumerate(_MENTION.split(token.content)):
        if place % 2:
            yield from _linked(part, Token("text", "", 0, content=part))
        elif part:
            yield Token("text", "", 0, content=part, level=token.level)


def _linked(url: str, content: Token) -> Iterator[Token]:
    href = destination(url)
    attributes: dict[str, str | int | float] = {"href": href}
    if url.startswith(OWN_SCHEMES):
        attributes |= {"class": "uri", "data-uri": url}
    elif href.startswith("/t/"):
        attributes |= {"class": "ref", "data-ref": url}
    if not href:
        yield content
        return
    yield Token("link_open", "a", 1, attrs=attributes)
    yield content
    yield Token("link_close", "a", -1)
    yield from _marks(url)


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
