"""Extend Django's template tags with icons, initials and labels."""

import datetime
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backlog_site.viewer import markdown as rendering
from backlog_site.viewer.queries.cards import Card
from backlog_site.viewer.queries.people import Member
from resources_app.fields.declarations import FIELDS
from resources_app.vocabulary import Kind

register = template.Library()

STATUS_WORDS = {
    "open": "Open",
    "in_progress": "In progress",
    "blocked": "Blocked",
    "done": "Done",
    "cancelled": "Cancelled",
}
PRIORITY_WORDS = {
    "none": "No priority",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "urgent": "Urgent",
}
PRIORITY_NUMBERS = {name: number for number, name in enumerate(PRIORITY_WORDS)}
_APPLE = re.compile(r"Macintosh|Mac OS X|iPhone|iPad")
# A symbol before the key on Apple keyboards, a word elsewhere.
_MODIFIERS = {"command": ("⌘", "Ctrl"), "shift": ("⇧", "Shift")}
_NICETY = re.compile(r", [^,]+(?= ago| from now)")
DEED_WORDS = {
    "create": "created",
    "archive": "archived",
    "unarchive": "brought back",
    "restore": "restored",
    "delete": "deleted",
    "move": "moved",
}


JOB_WORDS = {
    "scan_resources": "Scan of the mirrored folders",
    "reindex": "Rebuild of the search index",
    "sweep_index": "Check of the search index",
    "embed_documents": "Embedding new content",
    "compact_tallies": "Totals put together",
    "prune": "Old sessions and keys removed",
    "import_backlog": "Import",
    "ib_demo": "Demo library connected",
    "ib_sync": "IntelligenceBank: a turn of a run",
    "ib_incremental": "IntelligenceBank: what changed",
    "ib_reconcile": "IntelligenceBank: comparison with the source",
    "ib_full": "IntelligenceBank: everything",
    "ib_refresh": "IntelligenceBank: one folder refreshed",
    "ib_purge": "IntelligenceBank: what is gone removed",
    "ib_rights": "IntelligenceBank: rights of one person",
    "ib_rights_due": "IntelligenceBank: rights that are due",
}


@register.simple_tag(takes_context=True)
def card(context: template.Context, shown: Card) -> SafeString:
    """Render a card of the board. Boards show mostly the same cards, so their HTML is cached."""
    return _card_html(shown, context.get("group_by", ""), shown.is_late)


@lru_cache(maxsize=2_000)
def _card_html(shown: Card, group_by: str, _is_late: bool) -> SafeString:
    """Return the HTML of a card. The arguments are everything it depends on."""
    return render_to_string("viewer/_card.html", {"c": shown, "group_by": group_by})


@register.filter
def job_word(kind: str) -> str:
    return JOB_WORDS.get(kind, kind.replace("_", " ").capitalize())


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    return _icon(name, label)


@lru_cache(512)
def _icon(name: str, label: str) -> SafeString:
    sprite = static("viewer/icons.svg")
    if label:
        return format_html(
            '<svg class="i" role="img" aria-label="{}"><use href="{}#{}"/></svg>',
            label,
            sprite,
            name,
        )
    return format_html('<svg class="i" aria-hidden="true"><use href="{}#{}"/></svg>', sprite, name)


@register.filter
def status_word(status: str) -> str:
    return STATUS_WORDS.get(status, status)


@register.filter
def priority_word(priority: str) -> str:
    return PRIORITY_WORDS.get(priority, priority)


@register.filter
def priority_icon(priority: str) -> str:
    return f"p{PRIORITY_NUMBERS.get(priority, 0)}"


@register.filter
def field_word(name: str) -> str:
    declared = FIELDS[Kind.TASK].get(name)
    return declared.title if declared else name.replace("_", " ").capitalize()


@register.filter
def field_words(names: Sequence[str]) -> str:
    return ", ".join(field_word(name).lower() for name in names)


@register.filter
def field_value(value: Any, name: str) -> str:
    words = {"status": STATUS_WORDS, "priority": PRIORITY_WORDS}.get(name, {})
    return words.get(str(value), str(value)) if value not in (None, "") else "–"


@register.filter
def deed_word(action: str) -> str:
    return DEED_WORDS.get(action, action)


@register.filter
def initials(name: str) -> str:
    return Member(name, name).initials


@register.filter
def markdown(text: str) -> SafeString:
    return rendering.render(text)


@register.filter
def key(mapping: Mapping[str, Any], name: str) -> Any:
    return mapping.get(name, "")


@register.filter
def link_to(url: str) -> str:
    """Return the target of a reference. Our own schemes open here; the rest are ordinary links."""
    return rendering.destination(url)


@register.filter
def open_link(uri: str) -> str:
    return "/open/?uri=" + quote(uri, safe="")


@register.simple_tag(takes_context=True)
def query(context: Mapping[str, Any], **changed: Any) -> str:
    """Return the query string of this page with some parameters set. An empty value removes one."""
    request: HttpRequest = context["request"]
    pairs = request.GET.copy()
    for name, value in changed.items():
        if value in ("", None):
            pairs.pop(name, None)
        else:
            pairs[name] = str(value)
    return "?" + pairs.urlencode()


@register.simple_tag(takes_context=True)
def keys(context: Mapping[str, Any], key: str, modifier: str = "command") -> str:
    """Return the shortcut as the reader's platform writes it: ⌘K on Apple's, Ctrl K elsewhere."""
    request: HttpRequest | None = context.get("request")
    agent = request.headers.get("User-Agent", "") if request else ""
    apple, other = _MODIFIERS[modifier]
    return f"{apple}{key}" if _APPLE.search(agent) else f"{other} {key}"


@register.filter
def utc(moment: datetime.datetime) -> str:
    """Return the moment for a `datetime` attribute, the same for every reader."""
    return moment.astimezone(datetime.UTC).isoformat()


@register.filter
def day_of(moment: datetime.datetime | None) -> SafeString | str:
    if moment is None:
        return ""
    at = _local(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc(at),
        f"{at:%Y-%m-%d %H:%M %Z}",
        f"{at:%-d %b %Y}",
    )


@register.filter
def local_date(moment: str | datetime.datetime) -> str:
    return f"{_local(moment):%Y-%m-%d}"


def _local(moment: str | datetime.datetime) -> datetime.datetime:
    return timezone.localtime(
        datetime.datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    )


@register.filter
def ago(moment: str | datetime.datetime) -> SafeString:
    """Return `3 hours ago`, not `3 hours, 12 minutes ago`.

    The element and its tooltip hold the exact time.
    """
    at = _local(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        utc(at),
        f"{at:%Y-%m-%d %H:%M %Z}",
        _NICETY.sub("", str(naturaltime(at))),
    )


@register.filter
def diff_class(line: str) -> str:
    return {"+": "ins", "-": "del", "@": "hunk"}.get(line[:1], "")


@register.filter
def readable(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


@register.filter
def as_date(day: str | None) -> str:
    return f"{datetime.date.fromisoformat(day):%-d %b %Y}" if day else ""


@register.filter
def device(agent: str) -> str:
    """Return `Firefox on Linux`, enough for users to recognise their own device."""
    browsers = (
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    )
    systems = (
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("Windows", "Windows"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    )
    browser = next((name for mark, name in browsers if mark in agent), "A program")
    system = next((name for mark, name in systems if mark in agent), "")
    return f"{browser} on {system}" if system else browser


@register.filter
def tail(path: str) -> str:
    return path.rpartition("/")[2]
