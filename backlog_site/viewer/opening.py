"""Open any address beside the current page: a file, a folder or a field of a task; rendered,
highlighted, shown or offered.
"""

import csv
import io
import json
import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString, mark_safe

from backlog_site.viewer.highlighting import highlight_file
from backlog_site.viewer.items import item_context
from backlog_site.viewer.markdown import render as markdown
from backlog_site.viewer.markdown import section_id
from backlog_site.viewer.queries import folders
from backlog_site.viewer.shell import actor_of, is_fragment, page, show
from resources_app.addresses import uris
from resources_app.addresses.targets import AREAS
from resources_app.errors import BacklogError, InvalidUri
from resources_app.interchange import convert_links
from resources_app.reading.by_address import read
from resources_app.reading.result import Reading
from resources_app.reading.viewer import viewer_json
from search_app.mentions import mentioned_in

PICTURES = {"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml"}
MAX_SHOWN = 2_000_000
MAX_ROWS = 500
MAX_CELLS = 20_000
# Longer texts are shown without line numbers.
MAX_LINES = 20_000
# Raw content may be anything: it must run nothing, request nothing and not be framed.
RAW_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"
_ITEM = re.compile(r"mcp://backlog/(?:tasks|epics|archive)/((?:TASK|EPIC)-\d{4,})")
_LINES = re.compile(r"L(\d{1,7})(?:-L?(\d{1,7}))?")


@dataclass
class Opened:
    uri: str
    title: str
    mime_type: str
    size: int
    version: int | None
    path: str
    # One of these holds the content, depending on how it is shown.
    html: SafeString | None = None
    numbers: SafeString | None = None
    code: SafeString | None = None
    rows: list[list[str]] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)
    kind: str = "file"
    facts: dict[str, Any] = field(default_factory=dict)
    raw_url: str = ""
    portable: str = ""


@page()
def open_uri(request: HttpRequest) -> HttpResponse:
    given = request.GET.get("uri", "").strip()
    uri, _, fragment = given.partition("#")
    if re.fullmatch(r"(?:TASK|EPIC)-\d{4,}", uri):
        return redirect("viewer:item", uri)
    if match := _ITEM.fullmatch(uri):
        template = "viewer/_item.html" if is_fragment(request) else "viewer/item.html"
        return show(request, template, item_context(request, match[1]))
    try:
        opened = _opened(read(actor_of(request), uri), fragment)
    except BacklogError as error:
        return _missing(request, given, error)
    if opened.kind == "asset":
        template = "viewer/_asset.html" if is_fragment(request) else "viewer/asset.html"
        context = {"asset": opened.facts, "client_id": uris.parse(opened.uri).authority}
        return show(
            request,
            template,
            {
                "nav": "ib",
                "uri": given,
                "mentions": mentioned_in(request.user, opened.facts["id"]),
                **context,
            },
        )
    template = "viewer/_resource.html" if is_fragment(request) else "viewer/resource.html"
    mentions = mentioned_in(request.user, PurePosixPath(opened.path).name, besides=opened.uri)
    return show(
        request,
        template,
        {"nav": "resources", "opened": opened, "uri": given, "mentions": mentions},
    )


@page()
def raw(request: HttpRequest) -> HttpResponse:
    """Return the bytes. Images may be shown inside our pages; everything else is a download."""
    reading = read(actor_of(request), request.GET.get("uri", ""))
    contents = reading.contents
    body = (
        contents
        if isinstance(contents, bytes)
        else (contents if isinstance(contents, str) else json.dumps(contents)).encode()
    )
    is_picture = reading.mime_type in PICTURES and "download" not in request.GET
    name = quote(PurePosixPath(uris.parse(reading.uri).path).name)
    return HttpResponse(
        body,
        content_type=reading.mime_type if is_picture else "application/octet-stream",
        headers={
            "Content-Security-Policy": RAW_POLICY,
            "X-Content-Type-Options": "nosniff",
            "Content-Disposition": "inline"
            if is_picture
            else f"attachment; filename*=UTF-8''{name}",
        },
    )


@page()
def files(request: HttpRequest, path: str = "resources") -> HttpResponse:
    """Show the file tree, a folder at a time."""
    reading = read(actor_of(request), _with_query(request, uris.build_path(path.strip("/"))))
    if not reading.is_folder:
        return redirect("/open/?uri=" + quote(reading.uri, safe=""))
    parts = path.strip("/").split("/")
    crumbs = [(part, "/".join(parts[: place + 1])) for place, part in enumerate(parts)]
    context = {
        "nav": "resources",
        "crumbs": crumbs,
        "folder": reading.contents,
        "uri": uris.build_path(path.strip("/")),
        "branches": folders.tree(request.user, path.strip("/")),
        "here": path.strip("/"),
    }
    return show(request, "viewer/files.html", context)


def _with_query(request: HttpRequest, uri: str) -> str:
    cursor = request.GET.get("cursor")
    return f"{uri}?limit=200" + (f"&cursor={quote(cursor, safe='')}" if cursor else "")


def _opened(reading: Reading, fragment: str) -> Opened:
    shown = viewer_json(reading) if not isinstance(reading.contents, bytes) else {}
    opened = Opened(
        uri=reading.uri,
        title=_title(reading, shown),
        mime_type=reading.mime_type,
        size=reading.size,
        version=reading.version,
        path=uris.parse(reading.uri).path,
        facts=shown.get("frontmatter", {}),
        raw_url="/raw/?uri=" + quote(reading.uri, safe=""),
    )
    if reading.uri.startswith("file://"):
        opened.portable = convert_links.portable(reading.uri)[0] or ""
    _fill(opened, reading, shown, fragment)
    return opened


def _fill(opened: Opened, reading: Reading, shown: dict[str, Any], fragment: str) -> None:
    contents = reading.contents
    if reading.is_folder:
        opened.kind, opened.entries = "folder", _contained(contents)
    elif reading.uri.startswith("ib://") and contents.get("type") == "resource":
        opened.kind, opened.facts = "asset", contents
    elif reading.uri.startswith("ib://"):
        opened.kind, opened.entries = "folder", _shelf(contents)
        opened.title = str(contents.get("name") or opened.title)
    elif reading.mime_type in PICTURES:
        opened.kind = "picture"
    elif isinstance(contents, bytes) or reading.size > MAX_SHOWN:
        opened.kind = "binary"
    elif reading.mime_type == "text/markdown":
        opened.html = _at_section(markdown(shown["content"], base=_base(reading)), fragment)
    elif reading.mime_type == "text/csv" and (rows := _rows(contents)):
        opened.kind, opened.rows = "table", rows
    else:
        name = PurePosixPath(opened.path).name if isinstance(contents, str) else "answer.json"
        opened.numbers, opened.code = _numbered(highlight_file(shown["content"], name), fragment)


def _base(reading: Reading) -> str:
    """Return the base address of relative links. Only a file has one."""
    uri = uris.parse(reading.uri)
    is_file = uri.scheme == "file" or (uri.scheme == "mcp" and uri.segments[0] in AREAS)
    return str(uri.without_version()) if is_file else ""


def _rows(text: str) -> list[list[str]]:
    """Return the rows of a table.

    Returns none if it is malformed or too large, and the file is then shown as text.
    """
    try:
        rows = list(islice(csv.reader(io.StringIO(text)), MAX_ROWS))
    except csv.Error:
        return []
    return rows if sum(map(len, rows)) <= MAX_CELLS else []


def _numbered(marked: str, fragment: str) -> tuple[SafeString, SafeString]:
    """Return the line numbers and the lines.

    Lines named by the fragment are marked and scrolled to.
    """
    lines = marked.rstrip("\n").split("\n")
    if len(lines) > MAX_LINES:
        return mark_safe(""), mark_safe(marked)  # noqa: S308  escaped or marked by Pygments
    named = _LINES.fullmatch(fragment)
    first, last = (int(named[1]), int(named[2] or named[1])) if named else (0, 0)
    numbers = "".join(
        f'<a id="L{n}" href="#L{n}" data-line="{n}"{" autofocus" if n == first else ""}>{n}</a>'
        for n in range(1, len(lines) + 1)
    )
    code = "".join(
        f'<span class="line{" at" if first <= n <= last else ""}">{line}\n</span>'
        for n, line in enumerate(lines, 1)
    )
    return mark_safe(numbers), mark_safe(code)  # noqa: S308  the lines are escaped or marked by Pygments


def _at_section(html: SafeString, fragment: str) -> SafeString:
    """Scroll to the section that the fragment names."""
    here = f'id="{section_id(unquote(fragment))}"'
    return mark_safe(html.replace(here, f'{here} tabindex="-1" autofocus', 1)) if fragment else html  # noqa: S308  as before


def _contained(contents: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "title": one.get("title") or one["path"]} for one in contents["results"]]


def _shelf(contents: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of an IntelligenceBank folder: subfolders and assets."""
    shown = [(one, "folder") for one in contents.get("subfolders", ())]
    shown += [
        (one, "folder" if "folder" in one.get("type", "") else "asset")
        for one in contents.get("results", ())
    ]
    return [
        {"uri": one["uri"], "type": kind, "title": _name(one), "path": one["uri"]}
        for one, kind in shown
    ]


def _name(one: dict[str, Any]) -> str:
    """Return the name of a folder or asset, or the title of a search hit."""
    return str(one.get("name") or one.get("title") or one["uri"])


def _title(reading: Reading, shown: dict[str, Any]) -> str:
    title = shown.get("frontmatter", {}).get("title")
    if not title and reading.mime_type == "text/markdown":
        heading = re.search(r"^# (.+)$", shown["content"], re.MULTILINE)
        return "" if heading else PurePosixPath(uris.parse(reading.uri).path).name
    return str(title or PurePosixPath(uris.parse(reading.uri).path).name)


def _missing(request: HttpRequest, uri: str, error: BacklogError) -> HttpResponse:
    template = "viewer/_missing.html" if is_fragment(request) else "viewer/missing.html"
    name = PurePosixPath(uri.partition("?")[0]).name
    is_local = uri.startswith("file://") and not isinstance(error, InvalidUri)
    context = {"nav": "resources", "uri": uri, "error": error, "name": name, "is_local": is_local}
    return show(request, template, context, status=error.status)
