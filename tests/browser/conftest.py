"""Provide a running site, a real Chromium, and signed-in users."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.browser.chromium import find
from tests.browser.filling import PASSWORD, fill_library
from tests.intelligencebank.worlds import running_fake
from tests.mcp.site import ROOT, Site, running_site

# The CI machine has two cores and other work to do.
PATIENCE_MILLISECONDS = 20_000
SIZES = {1440: 900, 390: 844}


@dataclass
class Filled:
    site: Site
    # Folders of the IntelligenceBank library, by name.
    folders: dict[str, str]
    token: str
    nasty: list[str]

    @property
    def url(self) -> str:
        return self.site.url


@dataclass
class Watched:
    """Record the requests and complaints of a page."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


@contextmanager
def filled_site(redis: str) -> Iterator[Filled]:
    with running_fake() as library:
        folders = fill_library(library)
        settings = {
            "DJANGO_SETTINGS_MODULE": "backlog_site.settings",
            "BACKLOG_IB_LOCAL_ORIGINS": ",".join(library.urls.values()),
        }
        with running_site(redis, **settings) as site:
            command = (
                "import sys, django; django.setup(); from tests.browser.filling import fill;"
                " fill(sys.argv[1])"
            )
            made = subprocess.run(
                [sys.executable, "-c", command, library.urls["platform"]],
                cwd=ROOT,
                env=site.environment,
                check=True,
                stdout=subprocess.PIPE,
            )
            yield Filled(site, folders, **json.loads(made.stdout))


@pytest.fixture(scope="session")
def filled() -> Iterator[Filled]:
    with filled_site(os.environ["REDIS_URL"]) as site:
        yield site


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find()
    assert path, "no Chromium: run `make test-browser`, which installs it"
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MILLISECONDS)
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def cookies(filled: Filled, chromium: Browser) -> Callable[[str], Any]:
    """Sign in each user once, through the form."""
    kept: dict[str, Any] = {}

    def of(name: str) -> Any:
        if name not in kept:
            context = chromium.new_context()
            sign_in(context.new_page(), filled.url, name)
            kept[name] = context.storage_state()
            context.close()
        return kept[name]

    return of


def sign_in(page: Page, url: str, name: str, password: str = PASSWORD) -> None:
    page.goto(f"{url}/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", password)
    page.click("text=Sign in >> visible=true")
    page.wait_for_url(f"{url}/")


def expect_copied(page: Page, pattern: str) -> None:
    """Wait for the clipboard, which is written after the click returns."""
    page.wait_for_function(
        "pattern => navigator.clipboard.readText().then(text => RegExp(pattern).test(text))",
        arg=pattern,
    )


Visit = Callable[..., Watched]


@pytest.fixture
def contexts() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def signed_in(
    filled: Filled, chromium: Browser, cookies: Callable[[str], Any], contexts: ExitStack
) -> Callable[..., BrowserContext]:
    def make(
        name: str = "alice", width: int = 1440, theme: str = "light", **options: Any
    ) -> BrowserContext:
        context = chromium.new_context(
            base_url=filled.url,
            storage_state=cookies(name),
            viewport={"width": width, "height": SIZES[width]},
            color_scheme=theme,
            **options,
        )
        context.set_default_timeout(PATIENCE_MILLISECONDS)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=filled.url)
        contexts.callback(context.close)
        return context

    return make


@pytest.fixture
def visit(signed_in: Callable[..., BrowserContext]) -> Visit:
    def open_page(
        path: str, *, context: BrowserContext | None = None, ready: bool = True, **who: Any
    ) -> Watched:
        page = (context or signed_in(**who)).new_page()
        watched = Watched(page)
        page.on("request", lambda request: watched.requests.append(request.url))
        page.on(
            "console",
            lambda said: said.type in ("error", "warning") and watched.complaints.append(said.text),
        )
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (watched.dialogs.append(dialog.message), dialog.dismiss()))
        page.goto(path)
        if ready:
            expect(page.locator("html[data-ready='2']")).to_have_count(1)
        return watched

    return open_page
