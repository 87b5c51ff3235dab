"""Test that names are completed during typing: users, tasks, addresses; by keys, in the page and in
a dialog.
"""

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.test_accessible import findings


def suggestions(page: Page, text: str) -> None:
    page.keyboard.type(text)
    expect(page.locator("#suggest [role=option]").first).to_be_visible()


def test_people_tasks_and_files_are_completed_in_a_comment_by_keys(visit: Visit) -> None:
    watched = visit("/t/TASK-0021/")
    page, area = watched.page, watched.page.locator(".say textarea")
    area.focus()
    suggestions(page, "Ask @ca")
    expect(area).to_have_attribute("aria-controls", "suggest")
    page.keyboard.press("Tab")
    expect(area).to_have_value("Ask @carol ")
    expect(area).to_be_focused()

    suggestions(page, "about TASK-004")
    expect(page.locator("#suggest [role=option]")).to_have_count(8)
    page.keyboard.press("ArrowDown")
    expect(area).to_have_attribute("aria-activedescendant", "suggest-1")
    expect(page.locator("#suggest-1")).to_have_attribute("aria-selected", "true")
    second = page.locator("#suggest-1").get_attribute("data-text")
    page.keyboard.press("Enter")
    expect(area).to_have_value(f"Ask @carol about {second} ")

    suggestions(page, "and #12")
    expect(page.locator("#suggest-0")).to_contain_text("TASK-0012")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+z")
    expect(area).to_have_value(f"Ask @carol about {second} and #12")
    page.keyboard.press("Control+a")
    suggestions(page, "mcp://backlog/res")
    page.keyboard.press("Enter")
    expect(page.locator("#suggest-0")).to_have_attribute(
        "data-text", "mcp://backlog/resources/docs/"
    )
    page.keyboard.press("Enter")
    suggestions(page, "no")
    page.keyboard.press("Enter")
    expect(area).to_have_value("mcp://backlog/resources/docs/notes.md ")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".comments .uri")).to_have_attribute(
        "data-uri", "mcp://backlog/resources/docs/notes.md"
    )
    assert watched.complaints == []


def test_escape_closes_the_list_and_nothing_else(visit: Visit) -> None:
    page = visit("/board/?priority=urgent").page
    page.keyboard.press("c")
    area = page.locator("#dialog [name=description]")
    area.focus()
    suggestions(page, "See mcp://renames")
    expect(page.locator("#suggest-0")).to_have_attribute(
        "data-text", "mcp://backlog/resources/docs/notes.md"
    )
    page.keyboard.press("Escape")
    expect(page.locator("#suggest")).to_be_hidden()
    expect(area).to_be_focused()
    page.keyboard.type(" @")
    page.locator("#suggest [role=option]", has_text="bob").click()
    expect(area).to_have_value("See mcp://renames @bob ")
    page.keyboard.press("Escape")
    page.click("#ask >> text=Discard changes")
    expect(page.locator("#dialog")).to_be_hidden()


def test_the_list_stands_at_the_word_and_has_no_finding(visit: Visit) -> None:
    page = visit("/t/TASK-0022/edit/", bypass_csp=True).page
    area = page.locator("textarea[data-body]")
    area.fill("")
    suggestions(page, "One\n\nTwo with @a")
    listed, field = page.locator("#suggest").bounding_box(), area.bounding_box()
    assert listed and field
    assert field["x"] < listed["x"] < field["x"] + 200
    assert field["y"] + 40 < listed["y"] < field["y"] + 120
    assert findings(page, "suggestions") == []
