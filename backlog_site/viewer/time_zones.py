"""Determine the reader's time zone from a cookie set by the browser.

Missing or unknown names fall back to UTC.
"""

import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest

COOKIE = "timezone"


def zone_of(request: HttpRequest) -> datetime.tzinfo:
    name = request.COOKIES.get(COOKIE, "")
    return ZoneInfo(name) if name in _known() else datetime.UTC


@lru_cache(1)
def _known() -> frozenset[str]:
    """Return the names in the time zone database, cached because reading them walks a folder."""
    return frozenset(available_timezones())
