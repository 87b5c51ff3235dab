"""Extend the site's settings with the benchmark's baseline view and fill command."""

from backlog_site.settings import *  # noqa: F403
from backlog_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]
ROOT_URLCONF = "bench.urls"
