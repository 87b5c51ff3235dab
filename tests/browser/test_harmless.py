"""Test that texts that try to run do not, in pages, panes, search and previews."""

from playwright.sync_api import expect

from tests.browser.conftest import Filled, Visit, Watched

PAGES = (
    "/board/?status=blocked&epic_id=none",
    "/list/",
    "/activity/",
    "/activity/?view=journal",
    "/",
    "/files/resources",
)
FILES = (
    "mcp://backlog/resources/nasty.md",
    "mcp://backlog/resources/nasty.html",
    "mcp://backlog/resources/docs/picture.svg",
)


def assert_harmless(watched: Watched, site: str) -> None:
    assert watched.page.evaluate("() => window.pwned") is None
    assert watched.dialogs == []
    assert [url for url in watched.requests if not url.startswith((site, "data:", "blob:"))] == []
    assert [said for said in watched.complaints if "Content Security Policy" in said] == []


def test_nothing_that_was_written_runs_on_any_page(filled: Filled, visit: Visit) -> None:
    context = None
    for path in (
        *PAGES,
        *(f"/t/{ref}/" for ref in filled.nasty),
        *(f"/open/?uri={uri}" for uri in FILES),
    ):
        watched = visit(path, context=context)
        context = watched.page.context
        watched.page.wait_for_load_state()
        assert_harmless(watched, filled.url)
        watched.page.close()


def test_nothing_runs_in_the_pane_the_preview_or_the_search_box(
    filled: Filled, visit: Visit
) -> None:
    watched = visit(f"/t/{filled.nasty[0]}/edit/")
    page = watched.page
    page.click("text=Preview")
    expect(page.locator(".preview")).to_contain_text("window.pwned")
    page.locator("textarea").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type(" #onerror")
    expect(page.locator("#suggest [role=option]").first).to_contain_text("window.pwned")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("pwned")
    expect(page.locator("#from-server [role=option]").first).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("#pane .prose").first).to_contain_text("window.pwned")
    for link in page.locator("#pane .prose a").all():
        assert not (link.get_attribute("href") or "").lower().startswith(("javascript:", "data:"))
    assert_harmless(watched, filled.url)


def test_a_file_opened_by_its_own_address_cannot_run_either(filled: Filled, visit: Visit) -> None:
    watched = visit("/raw/?uri=mcp://backlog/resources/docs/picture.svg", ready=False)
    assert watched.page.evaluate("() => window.pwned") is None
    answer = watched.page.request.get("/raw/?uri=mcp://backlog/resources/nasty.html")
    assert "attachment" in answer.headers["content-disposition"]
    assert "sandbox" in answer.headers["content-security-policy"]
