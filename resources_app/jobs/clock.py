"""Provide the clock for leases: the database's clock, so that workers on several machines agree."""

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
    """Match leases that have expired, or end later than any worker could have requested.

    The latter happens when the clock was set back.
    """
    at = now()
    return Q(lease_until__lt=at) | Q(lease_until__gt=at + 2 * length)
