"""Gives a bare `pytest` a Valkey and a data folder of its own; refuses to run without a Valkey that answers."""

import atexit
import os
import signal
import tempfile
from contextlib import ExitStack

import django
import pytest
from django.conf import settings

from backlog_site.embedded import throwaway_valkey, valkey_answers

pytest_plugins = ["tests.people"]


def start_services() -> None:
    """Once per run."""
    services = ExitStack()
    atexit.register(services.close)
    os.environ["BACKLOG_DATA_DIR"] = services.enter_context(tempfile.TemporaryDirectory(prefix="backlog-tests-"))
    os.environ["REDIS_URL"] = services.enter_context(throwaway_valkey())


def hear_signals() -> None:
    """Whoever started us in the background made us, and all we start, deaf to Ctrl-C and to a closed terminal."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def require_valkey() -> None:
    if os.environ["REDIS_URL"].rstrip("/") != settings.REDIS_URL:
        raise pytest.UsageError("Django read its settings before tests/conftest.py could name the tests' servers.")
    if not valkey_answers(settings.REDIS_URL):
        raise pytest.UsageError(f"No Redis or Valkey answers at REDIS_URL={settings.REDIS_URL}; the tests need one.")


hear_signals()
os.environ.setdefault("BACKLOG_LOG_LEVEL", "CRITICAL")
# On import, before the conftest files of the folders below can import models.
if not os.environ.get("REDIS_URL"):
    start_services()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backlog_site.settings")
require_valkey()
django.setup()
