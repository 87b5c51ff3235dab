"""Extend the site's settings with the fixture that the conformance suite calls."""

from backlog_site.settings import *  # noqa: F403
from backlog_site.settings import INSTALLED_APPS as OF_THE_SITE

INSTALLED_APPS = [*OF_THE_SITE, "tests.mcp.conformance"]
