"""Turn scenes into pictures: light and dark, wide and narrow, tiled into one file each."""

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from backlog_site.devserver.embedded import throwaway_valkey
from tests.browser.chromium import find
from tests.browser.conftest import PATIENCE_MILLISECONDS, SIZES, sign_in
from tests.browser.filling import PASSWORD
from tests.browser.pictures.scenes import SCENES, Scene, World
from tests.mcp.conformance.official import whole_site
from tests.mcp.site import ROOT, running_site

FOLDER = ROOT / "docs/images/viewer"
# Shown by the README as well, wide and light.
FIRST = "board-pane"
SCALE, QUALITY = 0.75, 60
PRINTED = {"width": 794, "height": 1123}


def take(folder: Path, names: list[str], singles: Path | None) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = [scene for scene in SCENES if not names or scene.name in names]
    with running_world(folder) as world, sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MILLISECONDS)
        browser = playwright.chromium.launch(
            executable_path=find(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        cookies: dict[tuple[str, str], Any] = {}
        for scene in wanted:
            pictures = list(_pictures(browser, world, scene, cookies))
            if singles:
                for number, picture in enumerate(pictures):
                    (singles / f"{scene.name}-{number}.png").write_bytes(picture)
            content = _tiled(browser, pictures)
            (FOLDER / f"{scene.name}.webp").write_bytes(content)
            if scene.name == FIRST:
                (FOLDER.parent / "viewer.webp").write_bytes(_tiled(browser, pictures[:1]))
            print(f"{scene.name}.webp  {len(content) / 1024:.0f} KB", flush=True)
        browser.close()


@contextmanager
def running_world(folder: Path) -> Iterator[World]:
    """Run the demo as `make run` starts it, and an empty site."""
    with ExitStack() as stack:
        redis = stack.enter_context(throwaway_valkey())
        demo = stack.enter_context(whole_site(folder, dict(os.environ)))
        empty = stack.enter_context(
            running_site(redis, DJANGO_SETTINGS_MODULE="backlog_site.settings")
        )
        token = _prepare(demo.environment, "preparing.store()")
        _prepare(empty.environment)
        yield World(demo.url, empty.url, PASSWORD, token)


def _prepare(environment: dict[str, str], *more: str) -> str:
    """Prepare in a separate process, which writes into the database of a site."""
    steps = (
        "from tests.browser.pictures import preparing",
        "print(preparing.create())",
        f"preparing.set_password({PASSWORD!r})",
    )
    code = "; ".join(("import django", "django.setup()", *steps, *more))
    command = [sys.executable, "-c", code]
    told = subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    return told.strip()


def _pictures(
    browser: Browser, world: World, scene: Scene, cookies: dict[tuple[str, str], Any]
) -> Iterator[bytes]:
    for width in SIZES:
        page = _page(browser, world, scene, cookies, width)
        page.goto(scene.path)
        if scene.who:
            expect(page.locator("html[data-ready='2']")).to_have_count(1)
        scene.act(page, world)
        page.wait_for_load_state("networkidle" if not scene.who else "load")
        if scene.is_printed:
            page.emulate_media(media="print")
            page.set_viewport_size(PRINTED)
            yield page.screenshot()
            page.context.close()
            return
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            yield page.screenshot(animations="disabled")
        page.context.close()


def _page(
    browser: Browser, world: World, scene: Scene, cookies: dict[tuple[str, str], Any], width: int
) -> Page:
    url = world.empty if scene.is_empty else world.url
    key = (url, scene.who)
    if scene.who and key not in cookies:
        context = browser.new_context()
        sign_in(context.new_page(), url, scene.who, world.password)
        cookies[key] = context.storage_state()
        context.close()
    size = {"width": width, "height": SIZES[width]}
    context = browser.new_context(base_url=url, storage_state=cookies.get(key), viewport=size)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    return context.new_page()


def _tiled(browser: Browser, pictures: list[bytes]) -> bytes:
    """Tile the pictures with Chromium, so that no other program is needed."""
    sources = [f"data:image/png;base64,{base64.b64encode(one).decode()}" for one in pictures]
    page = browser.new_page()
    images = "".join(f'<img src="{source}">' for source in sources)
    rows = "grid-template-rows:repeat(2,auto);grid-auto-flow:column;" if len(pictures) > 1 else ""
    page.set_content(
        '<body style="margin:0"><div'
        f' style="display:inline-grid;{rows}gap:12px;background:#888">{images}</div>'
    )
    page.locator("img").last.evaluate("image => image.decode()")
    box = page.locator("div").bounding_box() or {}
    options = {
        "format": "webp",
        "quality": QUALITY,
        "captureBeyondViewport": True,
        "clip": {**box, "scale": SCALE},
    }
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", options)
    page.context.close()
    return base64.b64decode(answer["data"])
