"""The site's own settings, and what the benchmark adds: a view to compare with, a command that fills."""

from backlog_site.settings import *  # noqa: F403
from backlog_site.settings import INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "bench"]
ROOT_URLCONF = "bench.urls"
