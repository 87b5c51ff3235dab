"""The reader's time zone, which the browser names in a cookie. Without one, or with one unknown here, times are in UTC."""

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
    """Return the names in the time zone database; reading them walks a folder."""
    return frozenset(available_timezones())
