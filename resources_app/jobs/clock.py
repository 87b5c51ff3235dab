"""The clock that leases are measured with: the database's own, so that workers on several machines agree."""

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q
from django.utils import timezone


def now() -> datetime:
    if connection.vendor != "postgresql":
        return timezone.now()  # SQLite runs in this process
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment


def abandoned(length: timedelta) -> Q:
    """A lease that has ended, or ends later than anybody can have asked for: the clock was set back since."""
    at = now()
    return Q(lease_until__lt=at) | Q(lease_until__gt=at + 2 * length)
