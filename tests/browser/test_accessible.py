"""Test that axe finds nothing on any page or open layer, light and dark, wide and narrow."""

import itertools
from urllib.parse import quote

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import SIZES, Filled, Visit
from tests.browser.filling import LIBRARY

PAGES = (
    "/", "/board/?priority=urgent&assignee=carol", "/board/?search=nothinghasthis", "/list/?priority=high&assignee=alice",
    "/list/?group=epic_id&priority=high&assignee=alice", "/epics/", "/insights/", "/activity/?source=people&author=carol",
    "/activity/?view=journal&author=carol", "/activity/?type=ib&source=agents",
    "/files/resources", "/connect/", "/profile/", "/sync/", "/t/TASK-0002/",
    "/t/EPIC-0001/", "/t/TASK-0002/edit/", "/new/", "/open/?uri=mcp://backlog/resources/docs/notes.md",
    "/open/?uri=mcp://backlog/resources/docs/source.py", "/open/?uri=mcp://backlog/resources/docs/table.csv",
    "/open/?uri=file:///nowhere.md", "/t/TASK-9999/", "/files/artifacts",
    "/board/?priority=urgent&assignee=carol&open=/t/TASK-0003/", "/board/?priority=urgent&assignee=carol&group=epic_id",
)  # fmt: skip
SMALL_BOARD = "/board/?priority=urgent&assignee=carol"
OPTIONS = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "resultTypes": ["violations"],
}


def findings(page: Page, where: str) -> list[str]:
    """Return the findings in both themes and widths, without reloading the page."""
    wrong = []
    for width, theme in itertools.product(SIZES, ("light", "dark")):
        page.set_viewport_size({"width": width, "height": SIZES[width]})
        page.emulate_media(color_scheme=theme)
        found = Axe().run(page, options=OPTIONS).response["violations"]
        wrong += [f"{where} {width} {theme}: {one['id']}: {_nodes(one)}" for one in found]
    page.set_viewport_size({"width": 1440, "height": SIZES[1440]})
    return wrong


def _nodes(violation: dict) -> str:
    return " | ".join(node["html"][:120] for node in violation["nodes"][:3])


def test_no_page_has_a_finding(visit: Visit) -> None:
    page = visit("/profile/", name="carol", bypass_csp=True).page
    wrong: list[str] = []
    for path in PAGES:
        page.goto(path)
        expect(page.locator("html[data-ready='2']")).to_have_count(1)
        if "open=" in path:
            expect(page.locator("#pane .title")).to_be_visible()
        wrong += findings(page, path)
    assert wrong == []


def test_no_page_of_the_library_has_a_finding(filled: Filled, visit: Visit) -> None:
    watched = visit("/ib/", name="carol", bypass_csp=True)
    page = watched.page
    wrong = findings(page, "all folders")
    page.goto(f"/ib/{LIBRARY}/{filled.folders['Logos']}/")
    expect(page.locator("html[data-ready='2']")).to_have_count(1)
    page.locator(".cell input").first.check()
    wrong += findings(page, "folder")
    page.click("[aria-label='As a list']")
    expect(page.locator(".rows .cell").first).to_be_visible()
    wrong += findings(page, "folder as a list")
    uri = page.locator("a.thumb").first.get_attribute("data-uri") or ""
    page.locator("a.thumb").first.click()
    expect(page.locator("#pane .title")).to_be_visible()
    wrong += findings(page, "asset beside its folder")
    page.goto(f"/open/?uri={quote(uri, safe='')}")
    wrong += findings(page, "asset")
    page.goto("/t/TASK-0002/")
    page.click("text=Attach an asset")
    page.locator("#dialog .fold", has_text="Marketing").click()
    page.locator("#dialog .fold", has_text="Logos").click()
    expect(page.locator("#dialog .thumb").first).to_be_visible()
    wrong += findings(page, "picker")
    assert wrong == []
    assert [said for said in watched.complaints if "404" in said or "Policy" in said] == []


def test_no_open_layer_has_a_finding(visit: Visit) -> None:
    page = visit(SMALL_BOARD, name="carol", bypass_csp=True).page
    page.locator(".card a.t").first.focus()
    page.keyboard.press("s")
    wrong = findings(page, "status menu")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    wrong += findings(page, "assignee menu")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.locator("#spot input").fill("renames")
    expect(page.locator("#from-server [role=option]").first).to_be_visible()
    wrong += findings(page, "search box")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(page.locator("#dialog [name=title]")).to_be_visible()
    wrong += findings(page, "create dialog")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    wrong += findings(page, "keys")
    page.keyboard.press("Escape")
    page.locator(".card a.t").first.click()
    page.click(".copies summary")
    wrong += findings(page, "copy menu")
    assert wrong == []


def test_no_page_outside_the_shell_has_a_finding(visit: Visit) -> None:
    page = visit("/profile/", bypass_csp=True).page
    wrong = []
    for path in ("/profile/password/", "/nosuchpage/", "/o/authorize/?client_id=nobody"):
        page.goto(path)
        wrong += findings(page, path)
    page.context.clear_cookies()
    page.goto("/login/")
    assert wrong + findings(page, "login") == []
