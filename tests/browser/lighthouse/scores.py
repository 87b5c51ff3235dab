"""Run Lighthouse on a filled site: the accessibility score of the most used pages, wide and
narrow.
"""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import sync_playwright

from backlog_site.devserver.embedded import free_port, throwaway_valkey
from tests.browser.chromium import find
from tests.browser.conftest import Filled, filled_site, sign_in
from tests.browser.filling import LIBRARY
from tests.npm import node_modules

HERE = Path(__file__).resolve().parent
PATHS = ("/board/", "/list/", "/t/TASK-0002/", "/insights/", "/connect/")
PERFECT = 100


def print_scores() -> int:
    modules = node_modules(HERE / "package.json", "backlog-lighthouse")
    with throwaway_valkey() as redis, filled_site(redis) as site:
        scores = list(_scores(modules, site))
    for one in scores:
        path = urlsplit(one["url"]).path
        print(f"{one['score']:>3}  {one['size']:<7}  {path}  {', '.join(one['failed'])}")
    return 0 if all(one["score"] == PERFECT for one in scores) else 1


def _scores(modules: Path, site: Filled) -> Iterator[dict]:
    """Yield the scores.

    Lighthouse opens tabs of a signed-in browser, because it cannot fill a form.
    """
    port, paths = free_port(), (*PATHS, f"/ib/{LIBRARY}/{site.folders['Logos']}/")
    options = ["--no-sandbox", "--disable-dev-shm-usage", f"--remote-debugging-port={port}"]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        chromium = playwright.chromium
        context = chromium.launch_persistent_context(profile, executable_path=find(), args=options)
        sign_in(context.new_page(), site.url, "carol")
        command = [
            "node",
            str(HERE / "score.mjs"),
            str(modules),
            str(port),
            *(site.url + path for path in paths),
        ]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        context.close()
    yield from map(json.loads, told.splitlines())
